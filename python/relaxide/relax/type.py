"""The types of Relax."""

from ..ir.type import AnyType, FuncType, ObjectType, PackedFuncType, ShapeType, TensorType, TupleType, Type

__all__ = ["AnyType", "FuncType", "ObjectType", "PackedFuncType", "ShapeType", "TensorType", "TupleType", "Type"]
