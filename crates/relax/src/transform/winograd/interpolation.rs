//! The matrices of a product of polynomials by its values at points (Toom and Cook), transposed.

use super::TAPS;

/// What stands on either side of tiles.
pub(super) struct Interpolation {
    /// By point: of each element of a tile of the image.
    pub image: Vec<Vec<f64>>,
    /// By point: of each tap of a window.
    pub weight: Vec<Vec<f64>>,
    /// By element of a tile of the result: of each point.
    pub result: Vec<Vec<f64>>,
}

impl Interpolation {
    /// For tiles of so many elements a side.
    pub fn of(tile: i64) -> Interpolation {
        let finite: &[f64] = if tile == 2 { &[0.0, 1.0, -1.0] } else { &[0.0, 0.75, -0.75, 1.5, -1.5] };
        let powers = |p: f64, count: i64| (0..count).map(|k| p.powi(k as i32)).collect::<Vec<f64>>();
        let infinity = |count: i64| (0..count).map(|k| f64::from(k == count - 1)).collect::<Vec<f64>>();
        let others = |p: f64| finite.iter().copied().filter(move |q| *q != p);
        let mut weight: Vec<Vec<f64>> = finite
            .iter()
            .map(|&p| {
                let scale: f64 = others(p).map(|q| p - q).product();
                powers(p, TAPS).into_iter().map(|v| v / scale).collect()
            })
            .collect();
        weight.push(infinity(TAPS));
        let mut image: Vec<Vec<f64>> = finite.iter().map(|&p| polynomial(others(p))).collect();
        image.iter_mut().for_each(|row| row.push(0.0));
        image.push(polynomial(finite.iter().copied()));
        let mut columns: Vec<Vec<f64>> = finite.iter().map(|&p| powers(p, tile)).collect();
        columns.push(infinity(tile));
        let result = (0..tile as usize).map(|row| columns.iter().map(|column| column[row]).collect()).collect();
        Interpolation { image, weight, result }
    }

    /// Elements of a side of a tile of the result.
    pub fn tile(&self) -> i64 {
        self.result.len() as i64
    }
}

/// The coefficients of the polynomial with some roots, the constant one first.
fn polynomial(roots: impl Iterator<Item = f64>) -> Vec<f64> {
    roots.fold(vec![1.0], |p, root| {
        let shifted = [0.0].iter().chain(&p);
        let scaled = p.iter().map(|v| v * root).chain([0.0]);
        shifted.zip(scaled).map(|(a, b)| a - b).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_under_a_window_come_out_exactly() {
        for tile in [2usize, 4] {
            let by = Interpolation::of(tile as i64);
            let image: Vec<f64> = (0..tile + 2).map(|i| (i * i) as f64 - 3.0).collect();
            let weight = [2.0, -1.0, 0.5];
            let apply = |m: &[Vec<f64>], v: &[f64]| -> Vec<f64> {
                m.iter().map(|row| row.iter().zip(v).map(|(a, b)| a * b).sum()).collect()
            };
            let (d, g) = (apply(&by.image, &image), apply(&by.weight, &weight));
            let products: Vec<f64> = d.iter().zip(&g).map(|(a, b)| a * b).collect();
            let result = apply(&by.result, &products);
            for (at, value) in result.iter().enumerate() {
                let direct: f64 = weight.iter().enumerate().map(|(k, w)| w * image[at + k]).sum();
                assert!((value - direct).abs() < 1e-12, "tile {tile}, element {at}: {value}, not {direct}");
            }
        }
    }
}
