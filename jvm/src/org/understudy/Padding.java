package org.understudy;

import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.types.UTF8String;

/** Columns without content: the tag that says which input a row is of, and nulls for the columns of the others. */
abstract class Padding extends ColumnVector {
  Padding(DataType type) {
    super(type);
  }

  static final class Tag extends Padding {
    private final int input;

    Tag(int input) {
      super(DataTypes.IntegerType);
      this.input = input;
    }

    @Override
    public boolean hasNull() {
      return false;
    }

    @Override
    public int numNulls() {
      return 0;
    }

    @Override
    public boolean isNullAt(int row) {
      return false;
    }

    @Override
    public int getInt(int row) {
      return input;
    }
  }

  static final class Absent extends Padding {
    Absent(DataType type) {
      super(type);
    }
  }

  @Override
  public void close() {}

  @Override
  public boolean hasNull() {
    return true;
  }

  @Override
  public int numNulls() {
    return Integer.MAX_VALUE;
  }

  @Override
  public boolean isNullAt(int row) {
    return true;
  }

  private static UnsupportedOperationException absent() {
    return new UnsupportedOperationException("a null was read as a value");
  }

  @Override
  public boolean getBoolean(int row) {
    throw absent();
  }

  @Override
  public byte getByte(int row) {
    throw absent();
  }

  @Override
  public short getShort(int row) {
    throw absent();
  }

  @Override
  public int getInt(int row) {
    throw absent();
  }

  @Override
  public long getLong(int row) {
    throw absent();
  }

  @Override
  public float getFloat(int row) {
    throw absent();
  }

  @Override
  public double getDouble(int row) {
    throw absent();
  }

  @Override
  public ColumnarArray getArray(int row) {
    throw absent();
  }

  @Override
  public ColumnarMap getMap(int row) {
    throw absent();
  }

  @Override
  public Decimal getDecimal(int row, int precision, int scale) {
    throw absent();
  }

  @Override
  public UTF8String getUTF8String(int row) {
    throw absent();
  }

  @Override
  public byte[] getBinary(int row) {
    throw absent();
  }

  @Override
  public ColumnVector getChild(int ordinal) {
    throw absent();
  }
}
