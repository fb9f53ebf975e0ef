//! A front end from outside: a text format of ten operators and a loop.
//!
//! ```text
//! # A hidden state that is mixed four times.
//! input x f32[n, 8]
//! input w f32[8, 8]
//! h = tanh x
//! repeat 4 h
//!   y = matmul h w
//!   h = tanh y
//! end
//! output h
//! ```
//!
//! A line is a statement: `input`, `NAME = OPERATOR ARGUMENT…` (arguments are names or numbers), `repeat COUNT NAME…` with the
//! names that iterations change, `end`, `output`. [`import`] makes a module with one function `main` of it, or says all that is
//! wrong with the text. What it takes from [`relaxide::frontend`]:
//!
//! * [`Scope`] adds operators and numbers, and broadcasts what has different dimensions;
//! * [`Loop`] writes a loop as a function of its own; the names that it reads from outside become parameters ([`Captures`]).

use std::collections::HashMap;

use relaxide::IRModule;
use relaxide::ffi::{DataType, Ref};
use relaxide::frontend::{Captures, Iteration, Loop, Next, NodeError, Scope};
use relaxide::ir::prim::{self, PrimExpr};
use relaxide::ir::{Attrs, Type, Var};
use relaxide::relax::{BlockBuilder, Expr};

/// What is wrong with a text: lines, counted from one, and reasons.
#[derive(Debug, PartialEq)]
pub struct Problems(pub Vec<(usize, String)>);

impl std::fmt::Display for Problems {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|(line, reason)| writeln!(f, "line {line}: {reason}"))
    }
}

impl std::error::Error for Problems {}

/// The operators: the name here, that of Relax, and how many arguments it takes.
const OPERATORS: [(&str, &str, usize); 10] = [
    ("add", "add", 2),
    ("subtract", "subtract", 2),
    ("multiply", "multiply", 2),
    ("divide", "divide", 2),
    ("matmul", "matmul", 2),
    ("relu", "nn.relu", 1),
    ("tanh", "tanh", 1),
    ("exp", "exp", 1),
    ("sigmoid", "sigmoid", 1),
    ("softmax", "nn.softmax", 1),
];

/// A line that says something: its number and its words.
type Line<'t> = (usize, Vec<&'t str>);

/// What names stand for; none for a name whose line has a problem, which is told once.
type Names = HashMap<String, Option<Expr>>;

/// A program of a text.
pub fn import(text: &str) -> Result<IRModule, Problems> {
    let lines: Vec<Line> = text
        .lines()
        .enumerate()
        .map(|(at, line)| (at + 1, line.split('#').next().unwrap_or_default().split_whitespace().collect()))
        .filter(|(_, words): &Line| !words.is_empty())
        .collect();
    let mut problems = Vec::new();
    let (mut params, mut names) = (Vec::new(), Names::new());
    let mut dims = HashMap::new();
    for (at, words) in lines.iter().filter(|(_, words)| words[0] == "input") {
        match input(&words[1..], &mut dims) {
            Ok(param) => {
                names.insert(param.name.to_string(), Some(Expr::Var(param.clone())));
                params.push(param);
            }
            Err(error) => problems.push((*at, error.to_string())),
        }
    }
    let mut importer = Importer { problems };
    let mut builder = BlockBuilder::new();
    let function = builder.function(params, Attrs::new(), |builder| -> Result<Expr, NodeError> {
        let body: Vec<Line> = lines.iter().filter(|(_, words)| words[0] != "input").cloned().collect();
        let results = importer.statements(builder, &body, &mut names, &mut None);
        Ok(match results.as_slice() {
            [one] => one.clone(),
            all => Expr::tuple(all.to_vec()),
        })
    });
    match function {
        Ok(function) if importer.problems.is_empty() => {
            builder.module_mut().insert("main", function);
            Ok(builder.finish())
        }
        Ok(_) => Err(Problems(importer.problems)),
        Err(error) => Err(Problems([importer.problems, vec![(lines.len(), error.to_string())]].concat())),
    }
}

/// `x f32[n, 4]` as a parameter.
fn input(words: &[&str], dims: &mut HashMap<String, PrimExpr>) -> Result<Ref<Var>, NodeError> {
    let wrong = || NodeError::invalid("an input is written as `input NAME f32[DIMENSION, …]`");
    let (name, ty) = words.split_first().ok_or_else(wrong)?;
    let ty = ty.concat();
    let inner = ty.strip_prefix("f32[").and_then(|ty| ty.strip_suffix(']')).ok_or_else(wrong)?;
    let dim = |text: &str| match text.parse::<i64>() {
        Ok(known) if known >= 0 => Ok(prim::int(known)),
        Ok(_) => Err(NodeError::invalid("a dimension is not negative")),
        Err(_) if !text.is_empty() => {
            let var = || PrimExpr::Var(Var::dim(text.to_string()));
            Ok(dims.entry(text.to_string()).or_insert_with(var).clone())
        }
        Err(_) => Err(wrong()),
    };
    let dims = inner.split(',').map(dim).collect::<Result<Vec<_>, _>>()?;
    Ok(Var::new(name.to_string(), Type::tensor(dims, DataType::float(32))))
}

/// A name as a loop's body reads it: its own, or one of the outside.
struct Outside<'o> {
    names: &'o Names,
    captures: &'o mut Captures,
}

struct Importer {
    problems: Vec<(usize, String)>,
}

impl Importer {
    /// Adds statements, and gives what `output` names.
    fn statements(
        &mut self,
        builder: &mut BlockBuilder,
        lines: &[Line],
        names: &mut Names,
        outside: &mut Option<Outside>,
    ) -> Vec<Expr> {
        let (mut at, mut outputs) = (0, Vec::new());
        while let Some((number, words)) = lines.get(at) {
            at += 1;
            let result = match words.as_slice() {
                ["output", wanted @ ..] if outside.is_none() => {
                    let found = wanted.iter().map(|name| argument(builder, name, names, outside));
                    found.collect::<Result<Option<Vec<_>>, _>>().map(|found| outputs.extend(found.unwrap_or_default()))
                }
                ["repeat", count, carried @ ..] => {
                    let end = matching_end(&lines[at..]);
                    let body = &lines[at..at + end.unwrap_or(lines.len() - at)];
                    at += body.len() + 1;
                    match end {
                        Some(_) => self.repeat(builder, (count, carried), body, names, outside),
                        None => Err(NodeError::invalid("the loop has no `end`")),
                    }
                }
                [name, "=", operator, args @ ..] => {
                    let value = apply(builder, operator, args, names, outside);
                    names.insert(name.to_string(), value.as_ref().ok().cloned().flatten());
                    value.map(|_| ())
                }
                _ => Err(NodeError::invalid(format!("`{}` is no statement here", words.join(" ")))),
            };
            if let Err(error) = result {
                self.problems.push((*number, error.to_string()));
            }
        }
        outputs
    }

    /// `repeat COUNT NAME…`: the names are the loop's state.
    fn repeat(
        &mut self,
        builder: &mut BlockBuilder,
        (count, carried): (&str, &[&str]),
        body: &[Line],
        names: &mut Names,
        outside: &mut Option<Outside>,
    ) -> Result<(), NodeError> {
        let count = count.parse::<u32>().map_err(|_| NodeError::invalid(format!("`{count}` is no count")))?;
        let state = carried.iter().map(|name| argument(builder, name, names, outside));
        let Some(state) = state.collect::<Result<Option<Vec<Expr>>, _>>()? else { return Ok(()) };
        let looped = Loop {
            name: "repeat",
            limit: Some(prim::int(i64::from(count))),
            go: None,
            state,
            lists: Vec::new(),
            append: "",
        };
        let before = self.problems.len();
        let around = names.clone();
        let done =
            looped.run(builder, &mut |builder: &mut BlockBuilder, captures: &mut Captures, iteration: &Iteration| {
                // A body is written again until the types of its state are known; its problems are those of the last time.
                self.problems.truncate(before);
                let own = carried.iter().zip(&iteration.state);
                let mut inner: Names = own.map(|(name, value)| (name.to_string(), Some(value.clone()))).collect();
                self.statements(builder, body, &mut inner, &mut Some(Outside { names: &around, captures }));
                let state: Option<Vec<Expr>> = carried.iter().map(|name| inner.get(*name).cloned().flatten()).collect();
                let state = state.ok_or_else(|| NodeError::invalid("the loop's body has problems"))?;
                Ok(Next { go: None, state, rows: Vec::new(), again: false })
            });
        for (at, name) in carried.iter().enumerate() {
            names.insert(name.to_string(), done.as_ref().ok().and_then(|done| done.state.get(at).cloned()));
        }
        // What is wrong with the body has been said.
        if self.problems.len() > before { Ok(()) } else { done.map(|_| ()) }
    }
}

/// How many lines a loop's body has.
fn matching_end(lines: &[Line]) -> Option<usize> {
    let mut depth = 0;
    lines.iter().position(|(_, words)| {
        depth += i32::from(words[0] == "repeat") - i32::from(words[0] == "end");
        depth < 0
    })
}

/// Adds an operator; nothing where an argument has a problem of its own.
fn apply(
    builder: &mut BlockBuilder,
    operator: &str,
    args: &[&str],
    names: &Names,
    outside: &mut Option<Outside>,
) -> Result<Option<Expr>, NodeError> {
    let known = OPERATORS.iter().find(|(name, ..)| *name == operator);
    let (_, relax, count) = known.ok_or_else(|| {
        let all: Vec<&str> = OPERATORS.iter().map(|(name, ..)| *name).collect();
        NodeError::unsupported(format!("there is no operator `{operator}`; there are {}", all.join(", ")))
    })?;
    if args.len() != *count {
        return Err(NodeError::invalid(format!("`{operator}` takes {count} arguments, not {}", args.len())));
    }
    let args = args.iter().map(|name| argument(builder, name, names, outside));
    let Some(mut args) = args.collect::<Result<Option<Vec<Expr>>, _>>()? else { return Ok(None) };
    let mut scope = Scope::new(builder);
    if args.len() == 2 && operator != "matmul" {
        scope.broadcastable(&mut args)?;
    }
    scope.call(relax, args).map(Some)
}

/// A name or a number.
fn argument(
    builder: &mut BlockBuilder,
    word: &str,
    names: &Names,
    outside: &mut Option<Outside>,
) -> Result<Option<Expr>, NodeError> {
    if let Ok(number) = word.parse::<f64>() {
        return Scope::new(builder).scalar(number, DataType::float(32)).map(Some);
    }
    let unknown = || NodeError::invalid(format!("nothing before this line is called `{word}`"));
    match (names.get(word), outside) {
        (Some(value), _) => Ok(value.clone()),
        (None, Some(Outside { names, captures })) => {
            let value = names.get(word).ok_or_else(unknown)?;
            Ok(value.as_ref().map(|value| captures.expr(value)))
        }
        (None, None) => Err(unknown()),
    }
}

#[cfg(test)]
mod tests;
