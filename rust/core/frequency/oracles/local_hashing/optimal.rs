//! The number of buckets with the least variance.

use super::{LocalHashing, coefficient_bits};
use crate::frequency::shared::hashing::Modulus;
use crate::parameters::{DomainSize, Epsilon};

/// The largest number of codes that the functions tell apart.
pub(super) fn domain_limit(buckets: u64) -> u64 {
    Modulus::below_power(coefficient_bits(buckets)).get()
}

/// The number of buckets `g` of least variance `(1 - 1/g) / (g (p - 1/g)^2)` for a rare code, with
/// `p = e^eps / (e^eps + g - 1)`.
///
/// As a function of a real `g` the variance falls up to its only minimum at `g = e^eps + 1` and
/// rises from there, so one of the two whole numbers next to it is best, or the largest number
/// that leaves enough bits for the functions.
pub(super) fn optimal_buckets(epsilon: Epsilon, domain: DomainSize) -> u64 {
    let mut most = LocalHashing::MAXIMUM_BUCKETS;
    while most > 2 && domain_limit(most) < domain.get() {
        most /= 2;
    }
    let best = libm::exp(epsilon.get()) + 1.0;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in range")]
    let below = best.min(most as f64) as u64;
    let above = (below + 1).min(most);
    if variance(epsilon, above) < variance(epsilon, below) { above } else { below }
}

/// `(g - 1) (e^eps + g - 1)^2 / (g - 1)^2 (e^eps - 1)^2`, which is the variance above.
fn variance(epsilon: Epsilon, buckets: u64) -> f64 {
    let (ratio, others) = (libm::exp(epsilon.get()), buckets as f64 - 1.0);
    (ratio + others).powi(2) / (others * (ratio - 1.0).powi(2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Result;

    #[test]
    fn no_other_number_of_buckets_has_a_smaller_variance() -> Result<()> {
        for step in 1..80 {
            let epsilon = Epsilon::new(f64::from(step) * 0.1)?;
            let chosen = optimal_buckets(epsilon, DomainSize::new(1000)?);
            let p = |buckets: f64| epsilon.get().exp() / (epsilon.get().exp() + buckets - 1.0);
            let least = |buckets: f64| {
                (1.0 - 1.0 / buckets) / (buckets * (p(buckets) - 1.0 / buckets).powi(2))
            };
            for other in 2..6000_u32 {
                let other = f64::from(other);
                assert!(least(chosen as f64) <= least(other) * (1.0 + 1e-12), "{step}: {other}");
            }
        }
        Ok(())
    }

    #[test]
    fn a_large_domain_leaves_fewer_buckets() -> Result<()> {
        let buckets = |epsilon, size| -> Result<u64> {
            Ok(optimal_buckets(Epsilon::new(epsilon)?, DomainSize::new(size)?))
        };
        assert_eq!(buckets(0.01, 100)?, 2);
        assert_eq!(buckets(3.0, 100)?, 21);
        assert_eq!(buckets(3.0, (1 << 29) - 3)?, 21);
        assert_eq!(buckets(3.0, (1 << 29) - 2)?, 16);
        assert_eq!(buckets(3.0, (1 << 31) - 1)?, 4);
        assert_eq!(buckets(42.0, 100)?, 1 << 20);
        assert_eq!(domain_limit(2), (1 << 31) - 1);
        assert_eq!(domain_limit(1 << 20), (1 << 22) - 3);
        Ok(())
    }
}
