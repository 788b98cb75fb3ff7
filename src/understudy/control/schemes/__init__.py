"""How a slice is protected: predictions, costs, and the cheapest scheme that keeps an objective.

`controller.py` decides for all slices at once, from histories (`history.py`) by estimates (`estimates.py`) and prices
(`costs.py`). The steps between two schemes are in `control/replica/switching.py`. Start reading at `controller.py`.

May import `control.replica`, `model` and `errors`.
"""
