//! Sufficient statistics: exact integer sums, equal in any order of adding.

/// A sum of products of up to 192 bits: `low + 2^64 high`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wide {
    /// The sum of the low 64 bits of the terms.
    pub low: u128,
    /// The sum of the higher bits of the terms.
    pub high: u128,
}

impl Wide {
    /// Adds a product. At most 2^36 terms fit.
    #[inline]
    fn add(&mut self, weight: u128, factor: u64) {
        let mask = u128::from(u64::MAX);
        let low = (weight & mask) * u128::from(factor);
        self.low += low & mask;
        self.high += (low >> 64) + (weight >> 64) * u128::from(factor);
    }

    fn merge(&mut self, other: Self) {
        self.low += other.low;
        self.high += other.high;
    }
}

/// Sums over the reports of one coordinate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CoordinateSums {
    /// The number of reports of this coordinate.
    pub seen: u64,
    /// The sum of the cells.
    pub first: u128,
    /// The sum of their squares.
    pub second: u128,
}

/// Sums over the reports of one coordinate, weighted by inverse participation probabilities.
///
/// Weights and their squares are in units of 2^-32, rounded to the nearest unit. Each array holds
/// the sums of the weights, of weight times cell, and of weight times squared cell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WeightedMoments {
    /// With the weight `1/pi`.
    pub inverse: [Wide; 3],
    /// With the weight `1/pi^2`.
    pub inverse_squared: [Wide; 3],
}

/// Sums over the reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeanSums {
    /// The number of reports.
    pub received: u64,
    /// For every coordinate.
    pub coordinates: Vec<CoordinateSums>,
    /// The same sums with weights, if every node has its own participation probability.
    pub weighted: Option<Vec<WeightedMoments>>,
}

impl MeanSums {
    pub(super) fn zero(dimensions: usize, weighted: bool) -> Self {
        Self {
            received: 0,
            coordinates: vec![CoordinateSums::default(); dimensions],
            weighted: weighted.then(|| vec![WeightedMoments::default(); dimensions]),
        }
    }

    /// Adds the report of one node. Coordinates that there are not are left out.
    #[inline]
    pub(super) fn add(&mut self, report: impl Iterator<Item = (usize, u64)>, rate: Option<f64>) {
        self.received += 1;
        let weights = rate.map(weights);
        for (coordinate, cell) in report {
            let square = u128::from(cell) * u128::from(cell);
            if let Some(sums) = self.coordinates.get_mut(coordinate) {
                sums.seen += 1;
                sums.first += u128::from(cell);
                sums.second += square;
            }
            let (Some(all), Some((weight, squared))) = (&mut self.weighted, weights) else {
                continue;
            };
            if let Some(moments) = all.get_mut(coordinate) {
                // A cell is below 2^32.
                let powers = [1, cell, cell.wrapping_mul(cell)];
                for (power, (one, two)) in powers
                    .into_iter()
                    .zip(moments.inverse.iter_mut().zip(&mut moments.inverse_squared))
                {
                    one.add(weight, power);
                    two.add(squared, power);
                }
            }
        }
    }

    pub(super) fn merge(mut self, other: &Self) -> Self {
        self.received += other.received;
        for (sums, more) in self.coordinates.iter_mut().zip(&other.coordinates) {
            sums.seen += more.seen;
            sums.first += more.first;
            sums.second += more.second;
        }
        let ours = self.weighted.iter_mut().flatten();
        for (sums, more) in ours.zip(other.weighted.iter().flatten()) {
            for power in 0..3 {
                sums.inverse[power].merge(more.inverse[power]);
                sums.inverse_squared[power].merge(more.inverse_squared[power]);
            }
        }
        self
    }
}

/// `1/pi` and its square in units of 2^-32, for `pi >= 2^-30`.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in [2^32, 2^62]")]
fn weights(probability: f64) -> (u128, u128) {
    let weight = u128::from((4_294_967_296.0 / probability).round() as u64);
    (weight, (weight * weight + (1 << 31)) >> 32)
}
