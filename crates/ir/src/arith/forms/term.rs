//! Terms: the two sides of a rule and its conditions, as they are read from text.

use crate::BinaryOp;

/// Most names that one rule may use.
pub(super) const MAX_NAMES: usize = 12;

/// What a rule is made of. Names are places in [`Bindings`](super::matching::Bindings).
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Term {
    /// Any expression: `x`.
    Any(usize),
    /// An integer literal: `c1`.
    Literal(usize),
    /// The lanes of a vector: `lanes`.
    Lanes(usize),
    /// This number.
    Int(i64),
    /// This bool.
    Bool(bool),
    /// What a calculation with literals gives: `{c1 + c2}`.
    Computed(Box<Term>),
    /// An operator.
    Binary(BinaryOp, Box<[Term; 2]>),
    /// `!x`
    Not(Box<Term>),
    /// A node of several operands.
    Node(Node, Vec<Term>),
}

/// What takes several operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Node {
    Ramp,
    Broadcast,
    Select,
    IfThenElse,
    /// The absolute value, in calculations only.
    Abs,
}

/// A condition on what a rule matched.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Condition {
    /// A calculation with literals gives something else than zero.
    Holds(Term),
    /// The analyzer proves it.
    Proved(Term),
}

/// Why a line is no rule.
#[derive(Debug)]
pub(super) struct Malformed(pub String);

/// Where operands are matched in their order only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Free,
    /// Those of the node that [`leading`] finds.
    Leading,
    All,
}

/// One rule: `left` is written as `right` where all conditions hold.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    pub left: Term,
    pub right: Term,
    pub conditions: Vec<Condition>,
    /// Which operands are matched in their order only.
    pub order: Order,
}

impl Rule {
    /// The rules that a line stands for.
    ///
    /// Operands of `+`, `*`, `min`, `max`, `==`, `!=`, `&&` and `||` are matched in both orders. Behind `->` they are matched as
    /// they stand; behind `~>` in both orders, and the leading node of the result has the order that was matched.
    pub fn parse(line: &str) -> Result<Vec<Rule>, Malformed> {
        let (rule, conditions) = line.split_once(" if ").unwrap_or((line, ""));
        let arrow = ["=>", "->", "~>"].into_iter().find(|arrow| rule.contains(arrow));
        let arrow = arrow.ok_or_else(|| Malformed(format!("no arrow in `{line}`")))?;
        let (left, right) = rule.split_once(arrow).unwrap_or_default();
        let mut names = Vec::new();
        let [left, right] = [left, right].map(|side| Parser::new(side, &mut names).whole(0));
        let (left, right) = (left?, right?);
        let conditions = conditions.split(" and ").filter(|text| !text.is_empty());
        let conditions = conditions
            .map(|text| match text.strip_prefix("prove ") {
                Some(text) => Parser::new(text, &mut names).whole(0).map(Condition::Proved),
                None => Parser::new(text, &mut names).whole(0).map(Condition::Holds),
            })
            .collect::<Result<Vec<_>, _>>()?;
        if names.len() > MAX_NAMES {
            return Err(Malformed(format!("more than {MAX_NAMES} names in `{line}`")));
        }
        let order = match arrow {
            "=>" => Order::Free,
            "~>" => Order::Leading,
            _ => Order::All,
        };
        let mut rules = vec![Rule { left, right, conditions, order }];
        if arrow == "~>" {
            let mut mirrored = rules[0].clone();
            for side in [&mut mirrored.left, &mut mirrored.right] {
                if let Some(Term::Binary(_, operands)) = leading_mut(side) {
                    operands.swap(0, 1);
                }
            }
            rules.push(mirrored);
        }
        Ok(rules)
    }
}

/// Whether the operands may change places.
pub(super) fn commutes(op: BinaryOp) -> bool {
    use BinaryOp::*;
    matches!(op, Add | Mul | Min | Max | Eq | Ne | And | Or)
}

fn is_extremum(term: &Term) -> bool {
    matches!(term, Term::Binary(BinaryOp::Min | BinaryOp::Max, _))
}

fn is_sum_or_product(term: &Term) -> bool {
    matches!(term, Term::Binary(op, _) if commutes(*op))
}

/// The node whose order counts: the first minimum or maximum, or else the first node whose operands may change places.
pub(super) fn leading(term: &Term) -> Option<&Term> {
    find(term, is_extremum).or_else(|| find(term, is_sum_or_product))
}

fn leading_mut(term: &mut Term) -> Option<&mut Term> {
    let what = if find(term, is_extremum).is_some() { is_extremum } else { is_sum_or_product };
    find_mut(term, what)
}

fn find(term: &Term, what: fn(&Term) -> bool) -> Option<&Term> {
    if what(term) {
        return Some(term);
    }
    match term {
        Term::Binary(_, operands) => operands.iter().find_map(|t| find(t, what)),
        Term::Node(_, operands) => operands.iter().find_map(|t| find(t, what)),
        Term::Not(operand) => find(operand, what),
        _ => None,
    }
}

fn find_mut(term: &mut Term, what: fn(&Term) -> bool) -> Option<&mut Term> {
    if what(term) {
        return Some(term);
    }
    match term {
        Term::Binary(_, operands) => operands.iter_mut().find_map(|t| find_mut(t, what)),
        Term::Node(_, operands) => operands.iter_mut().find_map(|t| find_mut(t, what)),
        Term::Not(operand) => find_mut(operand, what),
        _ => None,
    }
}

/// Operators by how tightly they bind, the loosest first.
const LEVELS: [&[(&str, BinaryOp)]; 5] = [
    &[("||", BinaryOp::Or)],
    &[("&&", BinaryOp::And)],
    &[
        ("==", BinaryOp::Eq),
        ("!=", BinaryOp::Ne),
        ("<=", BinaryOp::Le),
        (">=", BinaryOp::Ge),
        ("<", BinaryOp::Lt),
        (">", BinaryOp::Gt),
    ],
    &[("+", BinaryOp::Add), ("-", BinaryOp::Sub)],
    &[("*", BinaryOp::Mul), ("//", BinaryOp::FloorDiv), ("%", BinaryOp::FloorMod)],
];

struct Parser<'a> {
    rest: &'a str,
    names: &'a mut Vec<String>,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, names: &'a mut Vec<String>) -> Parser<'a> {
        Parser { rest: text.trim(), names }
    }

    fn whole(&mut self, level: usize) -> Result<Term, Malformed> {
        let term = self.level(level)?;
        if self.rest.is_empty() { Ok(term) } else { Err(Malformed(format!("`{}` is left over", self.rest))) }
    }

    fn take(&mut self, token: &str) -> bool {
        let taken = self.rest.strip_prefix(token);
        self.rest = taken.map_or(self.rest, str::trim_start);
        taken.is_some()
    }

    fn expect(&mut self, token: &str) -> Result<(), Malformed> {
        if self.take(token) { Ok(()) } else { Err(Malformed(format!("`{token}` expected before `{}`", self.rest))) }
    }

    fn level(&mut self, level: usize) -> Result<Term, Malformed> {
        let Some(operators) = LEVELS.get(level) else { return self.operand() };
        let mut left = self.level(level + 1)?;
        while let Some((_, op)) = operators.iter().find(|(token, _)| self.take(token)) {
            let right = self.level(level + 1)?;
            left = Term::Binary(*op, Box::new([left, right]));
        }
        Ok(left)
    }

    fn operand(&mut self) -> Result<Term, Malformed> {
        if self.take("(") {
            let inner = self.level(0)?;
            return self.expect(")").map(|()| inner);
        }
        if self.take("{") {
            let inner = self.level(0)?;
            return self.expect("}").map(|()| Term::Computed(Box::new(inner)));
        }
        if self.take("!") {
            return Ok(Term::Not(Box::new(self.operand()?)));
        }
        if self.take("-") {
            let inner = self.operand()?;
            return Ok(match inner {
                Term::Int(value) => Term::Int(-value),
                inner => Term::Binary(BinaryOp::Sub, Box::new([Term::Int(0), inner])),
            });
        }
        let end = self.rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest.trim_start();
        if let Ok(value) = word.parse() {
            return Ok(Term::Int(value));
        }
        if self.take("(") {
            return self.call(word);
        }
        match word {
            "" => Err(Malformed(format!("an operand expected before `{}`", self.rest))),
            "true" | "false" => Ok(Term::Bool(word == "true")),
            _ => Ok(self.name(word)),
        }
    }

    fn name(&mut self, word: &str) -> Term {
        let known = self.names.iter().position(|name| name == word);
        let place = known.unwrap_or_else(|| {
            self.names.push(word.to_string());
            self.names.len() - 1
        });
        match word {
            "lanes" => Term::Lanes(place),
            _ if word.strip_prefix('c').is_some_and(|n| n.parse::<u8>().is_ok()) => Term::Literal(place),
            _ => Term::Any(place),
        }
    }

    fn call(&mut self, word: &str) -> Result<Term, Malformed> {
        let mut operands = vec![self.level(0)?];
        while self.take(",") {
            operands.push(self.level(0)?);
        }
        self.expect(")")?;
        let binary = match word {
            "min" => Some(BinaryOp::Min),
            "max" => Some(BinaryOp::Max),
            "div" => Some(BinaryOp::Div),
            "mod" => Some(BinaryOp::Mod),
            _ => None,
        };
        if let Some(op) = binary {
            let operands =
                <[Term; 2]>::try_from(operands).map_err(|_| Malformed(format!("`{word}` takes two operands")))?;
            return Ok(Term::Binary(op, Box::new(operands)));
        }
        let (node, count) = match word {
            "ramp" => (Node::Ramp, 3),
            "broadcast" => (Node::Broadcast, 2),
            "select" => (Node::Select, 3),
            "if_then_else" => (Node::IfThenElse, 3),
            "abs" => (Node::Abs, 1),
            _ => return Err(Malformed(format!("`{word}` is no function"))),
        };
        if operands.len() == count {
            Ok(Term::Node(node, operands))
        } else {
            Err(Malformed(format!("`{word}` takes {count} operands")))
        }
    }
}
