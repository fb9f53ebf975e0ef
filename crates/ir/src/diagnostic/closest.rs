//! What a misspelt name may have meant.

/// The candidate that is closest to a misspelt name, if one is close.
pub fn closest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let limit = 1 + name.chars().count() / 4;
    candidates.map(|c| (distance(name, c), c)).filter(|(d, _)| *d <= limit).min_by_key(|(d, _)| *d).map(|(_, c)| c)
}

/// The candidates that look like a misspelt name, up to `count` of them, the closest first and equals in alphabetical order.
/// Where [`closest`] guesses what was meant, this shows what there is nearby, and so looks further.
pub fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>, count: usize) -> Vec<&'a str> {
    let limit = (name.chars().count() / 2).max(2);
    let mut near: Vec<(usize, &str)> =
        candidates.map(|c| (distance(name, c), c)).filter(|(d, _)| *d <= limit).collect();
    near.sort_unstable();
    near.truncate(count);
    near.into_iter().map(|(_, candidate)| candidate).collect()
}

/// Levenshtein distance; long names count as far.
fn distance(a: &str, b: &str) -> usize {
    let head = |text: &'_ str| text.char_indices().nth(64).map_or(text.len(), |(end, _)| end);
    strsim::levenshtein(&a[..head(a)], &b[..head(b)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_name_finds_its_neighbour() {
        assert_eq!(closest("permute_dim", ["permute_dims", "add"].into_iter()), Some("permute_dims"));
        assert_eq!(closest("zzz", ["permute_dims", "add"].into_iter()), None);
    }

    #[test]
    fn neighbours_are_ranked() {
        let known = ["znver1", "znver2", "haswell", "skylake", "nehalem"];
        assert_eq!(nearest("znver", known.into_iter(), 3), ["znver1", "znver2"]);
        assert_eq!(nearest("hasvel", known.into_iter(), 3), ["haswell"]);
        assert_eq!(nearest("q", known.into_iter(), 3), [""; 0]);
    }
}
