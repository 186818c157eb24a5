//! Random numbers and the distributions drawn from them. State: one `u64`, owned by whoever draws. The same seed gives
//! the same numbers on every machine; no operating system is asked.

/// SplitMix64 (Steele, Lea, Flood 2014): passes the usual batteries, one addition and three mixes a number.
#[derive(Debug, Clone)]
pub struct Rng(u64);

/// The output function of SplitMix64: a bijection, so distinct inputs give distinct outputs.
#[must_use]
pub fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

impl Rng {
    #[must_use]
    pub fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number in `0..bound`, by multiplication: the bias is below `bound / 2^32`.
    pub fn below(&mut self, bound: u32) -> u32 {
        (((self.next_u64() >> 32) * u64::from(bound)) >> 32) as u32
    }

    /// A number in `[0, 1)`.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// An index in proportion to `weights`; for a few weights that rarely differ in their sum.
    pub fn pick(&mut self, weights: &[u32]) -> usize {
        let mut left = self.below(weights.iter().sum());
        for (index, weight) in weights.iter().enumerate() {
            if left < *weight {
                return index;
            }
            left -= weight;
        }
        unreachable!("the draw is below the sum of the weights")
    }
}

/// A distribution given by quantiles, straight between them. Sums and products only, no logarithm: bit for bit the same
/// everywhere.
#[derive(Debug)]
pub struct Quantiles {
    /// The value at each 1,024th, both ends included.
    values: Box<[f64]>,
}

const CELLS: usize = 1_024;

impl Quantiles {
    #[must_use]
    pub fn new(points: &[(f64, f64)]) -> Quantiles {
        assert!(points.len() >= 2 && points[0].0 == 0.0 && points[points.len() - 1].0 == 1.0, "quantiles from 0 to 1");
        let value_at = |share: f64| {
            let after = points.iter().position(|point| point.0 >= share).unwrap_or(points.len() - 1).max(1);
            let (low, high) = (points[after - 1], points[after]);
            low.1 + (high.1 - low.1) * (share - low.0) / (high.0 - low.0)
        };
        Quantiles { values: (0..=CELLS).map(|cell| value_at(cell as f64 / CELLS as f64)).collect() }
    }

    pub fn sample(&self, rng: &mut Rng) -> f64 {
        let at = rng.unit() * CELLS as f64;
        let cell = at as usize;
        self.values[cell] + (self.values[cell + 1] - self.values[cell]) * (at - cell as f64)
    }
}

/// Draws an index by weight in constant time (Walker's alias method).
#[derive(Debug)]
pub struct Alias {
    /// Per index: draws below the threshold stay, the others go to the second.
    cells: Box<[(u32, u32)]>,
}

impl Alias {
    #[must_use]
    pub fn new(weights: &[f64]) -> Alias {
        assert!(!weights.is_empty() && u32::try_from(weights.len()).is_ok(), "a few weights");
        let total: f64 = weights.iter().sum();
        let mut scaled: Vec<f64> = weights.iter().map(|weight| weight * weights.len() as f64 / total).collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) = (0..weights.len()).partition(|&i| scaled[i] < 1.0);
        let mut cells: Box<[(u32, u32)]> = (0..weights.len()).map(|index| (u32::MAX, index as u32)).collect();
        while let (Some(under), Some(&over)) = (small.pop(), large.last()) {
            cells[under] = ((scaled[under] * f64::from(u32::MAX)) as u32, over as u32);
            scaled[over] -= 1.0 - scaled[under];
            if scaled[over] < 1.0 {
                large.pop();
                small.push(over);
            }
        }
        Alias { cells }
    }

    pub fn sample(&self, rng: &mut Rng) -> usize {
        let draw = rng.next_u64();
        let index = ((draw >> 32) * self.cells.len() as u64) >> 32;
        let (threshold, alias) = self.cells[index as usize];
        if draw as u32 <= threshold { index as usize } else { alias as usize }
    }
}

#[cfg(test)]
#[path = "random_tests.rs"]
mod tests;
