//! Calls whose text has other arguments than their node.
//!
//! Programs write `R.arange(n)`, `R.eye(n)`, `R.nn.attention(q, k, v, bias)`, as TVM's functions take them; the nodes of these
//! calls always have all arguments, in an order of their own, and attention with a bias is another operator. What a program
//! may write stands here once, for TVMScript and Python.

/// What a program writes for an operator.
pub struct Surface {
    /// The operator.
    pub op: &'static str,
    /// The names of the arguments in order, each with what stands for it where it is left out; nothing where it must be given.
    pub params: &'static [(&'static str, Option<&'static str>)],
}

/// An argument of the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Slot<T> {
    /// What the program gives.
    Given(T),
    /// A number.
    Int(i64),
    /// The empty tuple, which stands for nothing.
    Nothing,
}

const QUERY: (&str, Option<&str>) = ("query", None);
const KEY: (&str, Option<&str>) = ("key", None);
const VALUE: (&str, Option<&str>) = ("value", None);
const BIAS: (&str, Option<&str>) = ("bias", Some("None"));

const SURFACES: &[Surface] = &[
    Surface { op: "arange", params: &[("start", None), ("end", Some("None")), ("step", Some("1"))] },
    Surface { op: "eye", params: &[("n", None), ("m", Some("None")), ("k", Some("0"))] },
    Surface { op: "nn.attention", params: &[QUERY, KEY, VALUE, BIAS] },
    Surface { op: "nn.attention_bias", params: &[QUERY, KEY, VALUE, BIAS] },
    Surface {
        op: "nn.attention_var_len",
        params: &[
            ("queries", None),
            ("keys", None),
            ("values", None),
            ("seqstart_q", None),
            ("max_seqlen_q", None),
            ("seqstart_k", Some("None")),
            ("max_seqlen_k", Some("None")),
        ],
    },
    Surface {
        op: "memory.view",
        params: &[
            ("data", None),
            ("shape", Some("None")),
            ("dtype", Some("None")),
            ("relative_byte_offset", Some("None")),
        ],
    },
];

/// What programs write for an operator, where it is not what the node has.
pub fn surface(op: &str) -> Option<&'static Surface> {
    SURFACES.iter().find(|surface| surface.op == op)
}

impl Surface {
    /// The operator that is called and its arguments, for what a program gives for each parameter.
    pub fn arrange<T: Clone>(&self, given: &[Option<T>]) -> (&'static str, Vec<Slot<T>>) {
        let at = |index: usize| given.get(index).cloned().flatten();
        let slot = |index: usize, other: Slot<T>| at(index).map_or(other, Slot::Given);
        let or = |index: usize, other: usize| slot(index, slot(other, Slot::Nothing));
        let slots = match self.op {
            // One bound is the end.
            "arange" if at(1).is_none() => vec![Slot::Int(0), or(0, 0), slot(2, Slot::Int(1))],
            "arange" => vec![or(0, 0), or(1, 1), slot(2, Slot::Int(1))],
            "eye" => vec![or(0, 0), or(1, 0), slot(2, Slot::Int(0))],
            "nn.attention" | "nn.attention_bias" => {
                let inputs = vec![or(0, 0), or(1, 1), or(2, 2)];
                return match at(3) {
                    None => ("nn.attention", inputs),
                    Some(bias) => ("nn.attention_bias", inputs.into_iter().chain([Slot::Given(bias)]).collect()),
                };
            }
            // Keys are as the queries are where nothing is said of them.
            "nn.attention_var_len" => vec![or(0, 0), or(1, 1), or(2, 2), or(3, 3), or(5, 3), or(4, 4), or(6, 4)],
            _ => (0..self.params.len()).map(|index| or(index, index)).collect(),
        };
        (self.op, slots)
    }

    /// What is said of the operator's arguments, in the order in which a program gives them.
    pub fn in_order<T>(&self, mut args: Vec<T>) -> Vec<T> {
        if self.op == "nn.attention_var_len" && args.len() > 5 {
            args.swap(4, 5);
        }
        args
    }
}

#[cfg(test)]
mod tests {
    use super::Slot::{Given, Int};
    use super::*;

    fn arranged(op: &str, given: &[Option<char>]) -> (&'static str, Vec<Slot<char>>) {
        surface(op).expect("the operator has a surface").arrange(given)
    }

    #[test]
    fn what_is_left_out_is_filled_in() {
        assert_eq!(arranged("arange", &[Some('n'), None, None]).1, [Int(0), Given('n'), Int(1)]);
        assert_eq!(arranged("arange", &[Some('a'), Some('b'), None]).1, [Given('a'), Given('b'), Int(1)]);
        assert_eq!(arranged("eye", &[Some('n'), None, None]).1, [Given('n'), Given('n'), Int(0)]);
    }

    #[test]
    fn attention_with_a_bias_is_the_operator_with_a_bias() {
        let inputs = [Some('q'), Some('k'), Some('v')];
        assert_eq!(arranged("nn.attention", &inputs).0, "nn.attention");
        let (op, args) = arranged("nn.attention", &[Some('q'), Some('k'), Some('v'), Some('b')]);
        assert_eq!((op, args.len()), ("nn.attention_bias", 4));
        let (_, args) = arranged("nn.attention_var_len", &[Some('q'), Some('k'), Some('v'), Some('s'), Some('m')]);
        assert_eq!(args[3..], [Given('s'), Given('s'), Given('m'), Given('m')]);
        let all: Vec<Option<char>> = "qkvsmtn".chars().map(Some).collect();
        let (_, args) = arranged("nn.attention_var_len", &all);
        let text = surface("nn.attention_var_len").unwrap().in_order(args);
        assert_eq!(text, "qkvsmtn".chars().map(Given).collect::<Vec<_>>());
    }

    #[test]
    fn every_surface_is_that_of_an_operator() {
        assert!(SURFACES.iter().all(|surface| super::super::lookup(surface.op).is_some()));
    }
}
