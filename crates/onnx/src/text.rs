//! Tensors of texts: indices into a table of texts.
//!
//! Classifiers name their classes by texts, encoders take categories that are texts, and models move both about (`Reshape`,
//! `Concat`, `Where`). Kernels compute with numbers only. So a tensor of texts is a tensor of indices and a table: what only moves
//! elements moves the indices, and what is about the texts is a builtin of the virtual machine that looks at each text of the table
//! once. The table is a list that the model's file holds, or a tensor of texts that the program computes or is given:
//!
//! ```text
//! label = LinearClassifier(x)  ["no", "yes"]     index: R.Tensor(("n",), "int64") = argmax(…), table "no", "yes"
//! y = Reshape(label, [-1, 1])                    lv: R.Tensor(("n", 1), "int64") = R.reshape(index, …)
//! output y                                       R.call_pure_packed("relaxide.vm.texts", lv, (bytes, bounds))
//!
//! input c: string[n, 1]                          index = [[0], [1], …], table c
//! k = LabelEncoder(c)  {"a": 7, "b": 8}          places = R.call_pure_packed("relaxide.vm.text_places", c, keys)
//!                                                k = take(take([7, 8, -1], places), index)
//! ```
//!
//! What an operator does with texts is in [`crate::text_ops`].

use relaxide_ffi::DataType;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_ir::{Attrs, Type, Var};
use relaxide_relax::{Expr, op};
use relaxide_tir::te;

use crate::dims;
use crate::error::NodeError;
use crate::node::Node;
use crate::proto::TensorProto;
use crate::scope::Scope;
use crate::value::Value;

type Result<T> = std::result::Result<T, NodeError>;

/// The number of the element type of texts.
pub const STRING: i64 = 8;

/// Most texts that a model's table may have.
const MAX_TEXTS: usize = 1 << 20;

/// A tensor of texts.
#[derive(Clone, Debug)]
pub struct Texts {
    /// For each element which of the texts it is.
    pub index: Expr,
    /// The texts.
    pub table: Table,
}

/// Texts in order.
#[derive(Clone, Debug)]
pub enum Table {
    /// Texts of the model.
    Known(Vec<String>),
    /// A tensor of texts of the program, and how many it has.
    Made(Expr, PrimExpr),
}

/// Whether a tensor of the file holds texts.
pub fn is_text(proto: &TensorProto) -> bool {
    i64::from(proto.data_type) == STRING
}

/// A constant of texts.
pub fn constant(proto: &TensorProto) -> Result<Value> {
    listed(texts(&proto.string_data)?, &proto.dims)
}

/// Texts of the model in a shape.
pub fn listed(table: Vec<String>, dims: &[i64]) -> Result<Value> {
    let places: Vec<i64> = (0..table.len() as i64).collect();
    let index = relaxide_frontend::constant::whole(&places, &[places.len() as i64], DataType::int(64))?;
    let index = index.reshape(dims).map_err(|e| NodeError::invalid(e.to_string()))?;
    Ok(Value::Texts(Texts { index: Expr::constant(index), table: Table::Known(table) }))
}

/// Texts of the file, which must be UTF-8.
pub fn texts(list: &[prost::bytes::Bytes]) -> Result<Vec<String>> {
    if list.len() > MAX_TEXTS {
        let (count, most) = (list.len(), MAX_TEXTS);
        return Err(NodeError::unsupported(format!("a tensor has {count} texts; up to {most} are supported")));
    }
    let read = |text: &prost::bytes::Bytes| String::from_utf8(text.to_vec());
    let all = list.iter().map(read).collect::<std::result::Result<_, _>>();
    all.map_err(|_| NodeError::invalid("a text is not UTF-8"))
}

/// A call of a builtin that only makes something of its arguments.
pub fn builtin(scope: &mut Scope, name: &str, args: impl Into<Vec<Expr>>, ty: Type) -> Result<Expr> {
    let mut all = vec![Expr::external(name)];
    all.extend(args.into());
    let call = op::call_typed("call_pure_packed", all, Attrs::new(), vec![ty]);
    scope.emit(call.map_err(|e| NodeError::Relax(e.to_string()))?)
}

/// A list of texts as an argument of a builtin: the bytes of all, and where each begins.
pub fn packed(texts: &[impl AsRef<str>]) -> Result<Expr> {
    let mut bytes = Vec::new();
    let mut bounds = vec![0];
    for text in texts {
        bytes.extend_from_slice(text.as_ref().as_bytes());
        bounds.push(bytes.len() as i64);
    }
    let size = bytes.len() as i64;
    let bytes = relaxide_frontend::constant::from_bytes(&bytes, &[size], DataType::uint(8))?;
    let bounds = relaxide_frontend::constant::whole(&bounds, &[bounds.len() as i64], DataType::int(64))?;
    Ok(Expr::tuple([Expr::constant(bytes), Expr::constant(bounds)]))
}

/// Elements of a vector by their places.
pub fn look_up(scope: &mut Scope, table: Expr, places: Expr) -> Result<Expr> {
    scope.op("take", [table, places], Attrs::new().with("axis", 0i64))
}

/// A vector of integers as a constant.
pub fn whole(scope: &Scope, values: &[i64]) -> Result<Expr> {
    scope.whole(values, &[values.len() as i64], DataType::int(64))
}

impl Table {
    /// How many texts there are.
    pub fn count(&self) -> PrimExpr {
        match self {
            Table::Known(texts) => prim::int(texts.len() as i64),
            Table::Made(_, count) => count.clone(),
        }
    }

    /// It as an argument of a builtin.
    pub fn argument(&self) -> Result<Expr> {
        match self {
            Table::Known(texts) => packed(texts),
            Table::Made(tensor, _) => Ok(tensor.clone()),
        }
    }

    /// What a builtin says of each text: a vector.
    pub fn each(&self, scope: &mut Scope, name: &str, further: Vec<Expr>, dtype: DataType) -> Result<Expr> {
        let args: Vec<Expr> = std::iter::once(self.argument()?).chain(further).collect();
        let vector = builtin(scope, name, args, Type::tensor_ndim(1, dtype))?;
        scope.bind_type(vector, Type::tensor([self.count()], dtype))
    }

    /// For each text its place among keys, of which the last of equal ones counts; their number where it is none.
    pub fn places(&self, scope: &mut Scope, keys: &[String]) -> Result<Expr> {
        let mut order: Vec<usize> = (0..keys.len()).collect();
        order.sort_by(|&i, &j| keys[i].cmp(&keys[j]).then(j.cmp(&i)));
        order.dedup_by(|next, kept| keys[*next] == keys[*kept]);
        let sorted: Vec<&str> = order.iter().map(|&i| keys[i].as_str()).collect();
        match self {
            Table::Known(texts) => {
                let place = |text: &String| sorted.binary_search(&text.as_str()).map_or(keys.len(), |at| order[at]);
                let places: Vec<i64> = texts.iter().map(|text| place(text) as i64).collect();
                whole(scope, &places)
            }
            Table::Made(..) => {
                let found = self.each(scope, "relaxide.vm.text_places", vec![packed(&sorted)?], DataType::int(64))?;
                let order: Vec<i64> = order.iter().copied().chain([keys.len()]).map(|i| i as i64).collect();
                let order = whole(scope, &order)?;
                look_up(scope, order, found)
            }
        }
    }
}

impl Texts {
    /// A tensor of texts of the program: a value that is one when the program runs, with dimensions as far as they are known.
    pub fn unpack(scope: &mut Scope, value: Expr, dims: Vec<Option<PrimExpr>>) -> Result<Texts> {
        let rank = dims.len() as i64;
        let args = vec![value, Expr::prim(prim::int(rank))];
        let tensor = builtin(scope, "relaxide.vm.text_tensor", args, Type::any())?;
        let shape = builtin(scope, "relaxide.vm.text_shape", vec![tensor.clone()], Type::shape_ndim(rank))?;
        let fresh =
            |(i, dim): (usize, Option<PrimExpr>)| dim.unwrap_or_else(|| PrimExpr::Var(Var::dim(format!("d{i}"))));
        let dims: Vec<PrimExpr> = dims.into_iter().enumerate().map(fresh).collect();
        scope.bind_type(shape, Type::shape(dims.iter().cloned()))?;
        let count = dims::simplify(&dims::product(&dims));
        let index = scope.te("places", Vec::new(), |_| {
            vec![te::compute("places", [count.clone()], |at| prim::cast(DataType::int(64), &at[0]))]
        })?;
        let index = scope.reshape(index, dims)?;
        Ok(Texts { index, table: Table::Made(tensor, count) })
    }

    /// It as one value of the virtual machine.
    pub fn object(&self, scope: &mut Scope) -> Result<Expr> {
        let args = vec![self.index.clone(), self.table.argument()?];
        builtin(scope, "relaxide.vm.texts", args, Type::any())
    }

    /// Dimensions of the tensor.
    pub fn dims(&self, scope: &Scope) -> Result<Vec<PrimExpr>> {
        scope.dims(&self.index)
    }

    /// A vector's elements, one for each text of the table, as a tensor of the texts' shape.
    pub fn spread(&self, scope: &mut Scope, of_texts: Expr) -> Result<Expr> {
        look_up(scope, of_texts, self.index.clone())
    }

    /// Tensors of texts with one table: the indices of each, and the table.
    pub fn joined(scope: &mut Scope, all: &[&Texts]) -> Result<(Vec<Expr>, Table)> {
        let mut known = Vec::new();
        for texts in all {
            if let Table::Known(table) = &texts.table {
                known.extend(table.iter().cloned());
            }
        }
        let counts: Vec<PrimExpr> = all.iter().map(|texts| texts.table.count()).collect();
        let total = dims::simplify(&counts.iter().cloned().fold(prim::int(0), |a, b| a + b));
        let table = if all.iter().all(|texts| matches!(texts.table, Table::Known(_))) {
            Table::Known(known)
        } else {
            let args = all.iter().map(|texts| texts.table.argument()).collect::<Result<Vec<_>>>()?;
            Table::Made(builtin(scope, "relaxide.vm.text_joined", args, Type::any())?, total)
        };
        let mut offset = prim::int(0);
        let mut indices = Vec::new();
        for (texts, count) in all.iter().zip(counts) {
            let index = texts.index.clone();
            indices.push(if offset.is_int(0) {
                index
            } else {
                let offset = scope.dim_tensor(&dims::simplify(&offset), DataType::int(64))?;
                scope.call("add", [index, offset])?
            });
            offset = offset + count;
        }
        Ok((indices, table))
    }
}

/// A list of texts as an attribute of a node, where it has one that is not empty.
pub fn attribute(node: &Node, name: &str) -> Result<Option<Vec<String>>> {
    Ok(node.strings(name)?.filter(|texts| !texts.is_empty()))
}

/// The labels of a classifier: numbers, or texts with their places in the list for numbers.
pub struct Labels {
    /// The numbers.
    pub numbers: Vec<i64>,
    texts: Option<Vec<String>>,
}

impl Labels {
    /// The attribute `ints` or `strings`, whichever is there.
    pub fn of(node: &Node, ints: &str, strings: &str) -> Result<Labels> {
        let texts = attribute(node, strings)?;
        let numbers = match &texts {
            Some(texts) => (0..texts.len() as i64).collect(),
            None => node.ints(ints)?.unwrap_or_default(),
        };
        Ok(Labels { numbers, texts })
    }

    /// The outputs, of which the first has the labels' numbers, with the labels themselves.
    pub fn put(self, mut outputs: Vec<Value>) -> Vec<Value> {
        if let (Some(table), Some(Value::Computed(index))) = (self.texts, outputs.first().cloned()) {
            outputs[0] = Value::Texts(Texts { index, table: Table::Known(table) });
        }
        outputs
    }
}
