//! Reports, and their sufficient statistics.

/// The reports of the nodes that took part, in the order of the nodes.
#[derive(Debug, Clone, PartialEq)]
pub struct Reports<O> {
    /// The items of all reports, one report after the other. In direct encoding a report is one
    /// code.
    pub codes: Vec<O>,
    /// The participation probability of each reporting node, if every node has its own.
    pub probabilities: Option<Vec<f64>>,
}

/// Counts of the reports that support each code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tally {
    /// The number of reports that support each code.
    pub support: Vec<u64>,
    /// The number of reports.
    pub received: u64,
    /// Inverse-probability weights, if every node has its own participation probability.
    pub weighted: Option<WeightedSums>,
}

/// Sums of the inverse participation probabilities of the nodes that reported.
///
/// The unit is 2^-32, and each weight is rounded to the nearest unit. The sums are exact integers,
/// so the order in which tallies are merged does not matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WeightedSums {
    /// The sum of `1/pi` over the reports that support each code. If reports hold scores, the sum
    /// of `score/pi`, in two's complement.
    pub inverse: Vec<u128>,
    /// The sum of `1/pi^2` over the reports that support each code.
    pub inverse_squared: Vec<u128>,
    /// The sum of `1/pi` over all reports.
    pub total: u128,
    /// The sum of `1/pi^2` over all reports.
    pub total_squared: u128,
}

impl WeightedSums {
    pub(super) fn zero(size: usize) -> Self {
        Self { inverse: vec![0; size], inverse_squared: vec![0; size], total: 0, total_squared: 0 }
    }

    /// Adds one report of a node that takes part with `probability`; `supported` visits the codes
    /// that it supports, with their scores: one, unless reports hold other numbers. At most 2^36 reports fit: 2^36 squared weights of 2^92 units.
    #[inline]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in [2^32, 2^62]")]
    pub(super) fn add(
        &mut self,
        probability: f64,
        scores: impl FnOnce(&mut dyn FnMut(usize, i64)),
    ) {
        let weight = (4_294_967_296.0 / probability).round() as u64;
        let square = (u128::from(weight) * u128::from(weight) + (1 << 31)) >> 32;
        let weight = u128::from(weight);
        self.total += weight;
        self.total_squared += square;
        scores(&mut |index, score| {
            // Two's complement: a score may be negative.
            #[expect(clippy::cast_sign_loss)]
            let score = i128::from(score) as u128;
            let (inverse, squared) = (&mut self.inverse[index], &mut self.inverse_squared[index]);
            *inverse = inverse.wrapping_add(weight.wrapping_mul(score));
            *squared = squared.wrapping_add(square.wrapping_mul(score));
        });
    }

    pub(super) fn merge(mut self, other: &Self) -> Self {
        for (sum, term) in self.inverse.iter_mut().zip(&other.inverse) {
            *sum = sum.wrapping_add(*term);
        }
        for (sum, term) in self.inverse_squared.iter_mut().zip(&other.inverse_squared) {
            *sum = sum.wrapping_add(*term);
        }
        self.total += other.total;
        self.total_squared += other.total_squared;
        self
    }
}
