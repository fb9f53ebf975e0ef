//! Which forms of a value a `match` leaves out.
//!
//! The method is Maranget's: a matrix of patterns is looked at column by column; a constructor that no row of a column
//! names leads to a value that no row matches. See "Warnings for pattern matching", JFP 17 (2007).

use relaxide_ffi::Ref;

use crate::*;

/// A form in a message.
#[derive(Clone, Debug)]
enum Case {
    Any,
    Made(Ref<Constructor>, Vec<Case>),
    Tuple(Vec<Case>),
}

impl std::fmt::Display for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let list = |cases: &[Case]| cases.iter().map(Case::to_string).collect::<Vec<_>>().join(", ");
        match self {
            Case::Any => f.write_str("_"),
            Case::Made(c, fields) if fields.is_empty() => f.write_str(&c.name),
            Case::Made(c, fields) => write!(f, "{}({})", c.name, list(fields)),
            Case::Tuple(fields) => write!(f, "({})", list(fields)),
        }
    }
}

/// How many steps the search may take; a `match` that is larger counts as complete, and fails when it runs if it is not.
const BUDGET: usize = 100_000;

/// The forms that no case fits, each as text; empty for a complete match.
pub fn unmatched(module: &Module, m: &Match, _: &Type) -> Vec<String> {
    let rows: Vec<Vec<Pattern>> = m.clauses.iter().map(|clause| vec![clause.pattern.clone()]).collect();
    let mut budget = BUDGET;
    let mut found = Vec::new();
    missing(module, &rows, 1, &mut budget, &mut found);
    found.into_iter().map(|case| case.first().map_or("_".to_string(), Case::to_string)).collect()
}

/// Rows of `width` forms that no row of patterns fits.
fn missing(module: &Module, rows: &[Vec<Pattern>], width: usize, budget: &mut usize, found: &mut Vec<Vec<Case>>) {
    if *budget == 0 {
        return;
    }
    *budget -= 1;
    if width == 0 {
        if rows.is_empty() {
            found.push(Vec::new());
        }
        return;
    }
    if rows.is_empty() {
        found.push(vec![Case::Any; width]);
        return;
    }
    let named = rows.iter().find_map(|row| match &row[0] {
        Pattern::Constructor(p) => Some(p.constructor.clone()),
        _ => None,
    });
    let tuple = rows.iter().find_map(|row| match &row[0] {
        Pattern::Tuple(p) => Some(p.patterns.len()),
        _ => None,
    });
    if let Some(constructor) = named {
        let all = module.type_of(&constructor).map(|data| data.constructors.clone()).unwrap_or_default();
        for constructor in all {
            let count = constructor.inputs.len();
            let special = specialized(rows, count, Some(&constructor));
            let mut inner = Vec::new();
            missing(module, &special, count + width - 1, budget, &mut inner);
            for mut case in inner {
                let rest = case.split_off(count);
                let mut whole = vec![Case::Made(constructor.clone(), case)];
                whole.extend(rest);
                found.push(whole);
            }
        }
    } else if let Some(count) = tuple {
        let mut inner = Vec::new();
        missing(module, &specialized(rows, count, None), count + width - 1, budget, &mut inner);
        for mut case in inner {
            let rest = case.split_off(count);
            let mut whole = vec![Case::Tuple(case)];
            whole.extend(rest);
            found.push(whole);
        }
    } else {
        let rest: Vec<Vec<Pattern>> = rows.iter().map(|row| row[1..].to_vec()).collect();
        let mut inner = Vec::new();
        missing(module, &rest, width - 1, budget, &mut inner);
        for case in inner {
            let mut whole = vec![Case::Any];
            whole.extend(case);
            found.push(whole);
        }
    }
}

/// The rows that may fit a value of a constructor (or a tuple), with its fields in front.
fn specialized(rows: &[Vec<Pattern>], count: usize, constructor: Option<&Ref<Constructor>>) -> Vec<Vec<Pattern>> {
    let mut out = Vec::new();
    for row in rows {
        let fields = match &row[0] {
            Pattern::Wildcard(_) | Pattern::Var(_) => vec![Pattern::wildcard(); count],
            Pattern::Constructor(p) => match constructor {
                Some(c) if p.constructor.tag == c.tag && p.patterns.len() == count => p.patterns.clone(),
                _ => continue,
            },
            Pattern::Tuple(p) if p.patterns.len() == count => p.patterns.clone(),
            Pattern::Tuple(_) => continue,
        };
        out.push(fields.into_iter().chain(row[1..].iter().cloned()).collect());
    }
    out
}
