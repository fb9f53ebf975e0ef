//! The functions that cells apply to their gates.

use relaxide_relax::Expr;

use crate::error::NodeError;
use crate::node::Node;
use crate::ops::activation as formula;
use crate::ops::elementwise::{clip_between, with_number};
use crate::scope::Scope;
use relaxide_frontend::recurrent as cell;

type Result<T> = std::result::Result<T, NodeError>;

/// A function of one gate, with its parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Activation {
    name: String,
    alpha: f64,
    beta: f64,
}

/// Names, and the defaults of the parameters that each takes.
const KNOWN: &[(&str, Option<f64>, Option<f64>)] = &[
    ("affine", Some(1.0), Some(0.0)),
    ("elu", Some(1.0), None),
    ("hardsigmoid", Some(0.2), Some(0.5)),
    ("leakyrelu", Some(0.01), None),
    ("relu", None, None),
    ("scaledtanh", Some(1.0), Some(1.0)),
    ("sigmoid", None, None),
    ("softplus", None, None),
    ("softsign", None, None),
    ("tanh", None, None),
    ("thresholdedrelu", Some(1.0), None),
];

/// The functions of a node, in order: `defaults` for each direction where the node names none. Parameters are consumed by
/// those functions that take any.
pub fn of(node: &Node, defaults: &[&str], directions: usize) -> Result<Vec<Activation>> {
    let names = match node.strings("activations")? {
        Some(names) => names,
        None => defaults.iter().cycle().take(defaults.len() * directions).map(|s| s.to_string()).collect(),
    };
    if names.len() != defaults.len() * directions {
        let (given, needed) = (names.len(), defaults.len() * directions);
        return Err(NodeError::invalid(format!("{given} activations are named where {needed} are needed")));
    }
    let mut alphas = node.floats("activation_alpha")?.unwrap_or_default().into_iter();
    let mut betas = node.floats("activation_beta")?.unwrap_or_default().into_iter();
    let one = |name: String| {
        let lower = name.to_ascii_lowercase();
        let Some((_, alpha, beta)) = KNOWN.iter().find(|(known, ..)| *known == lower) else {
            return Err(NodeError::unsupported(format!("the activation `{name}` is not known")));
        };
        let value = |default: Option<f64>, list: &mut std::vec::IntoIter<f32>| {
            default.map_or(0.0, |default| list.next().map_or(default, f64::from))
        };
        let (alpha, beta) = (value(*alpha, &mut alphas), value(*beta, &mut betas));
        Ok(Activation { name: lower, alpha, beta })
    };
    names.into_iter().map(one).collect()
}

impl cell::Activation for Activation {
    fn apply(&self, scope: &mut relaxide_frontend::Scope<'_>, mut x: Expr, clip: Option<f64>) -> Result<Expr> {
        let scope = &mut Scope::new(scope.builder());
        if let Some(clip) = clip {
            x = clip_between(scope, x, Some(-clip), Some(clip))?;
        }
        let (alpha, beta) = (self.alpha, self.beta);
        match self.name.as_str() {
            "affine" => formula::line(scope, x, alpha, beta),
            "elu" => formula::exponential(scope, x, alpha, 1.0),
            "hardsigmoid" => formula::clipped_line(scope, x, alpha, beta),
            "leakyrelu" => formula::leaky(scope, x, alpha),
            "relu" => scope.call("nn.relu", [x]),
            "scaledtanh" => {
                let inner = with_number(scope, "multiply", x, beta)?;
                let tanh = scope.call("tanh", [inner])?;
                with_number(scope, "multiply", tanh, alpha)
            }
            "softplus" => formula::soft_plus(scope, x),
            "softsign" => formula::soft_sign(scope, x),
            "thresholdedrelu" => formula::above(scope, x, alpha),
            name => scope.call(if name == "tanh" { "tanh" } else { "sigmoid" }, [x]),
        }
    }
}
