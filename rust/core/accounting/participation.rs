//! Random participation in federated learning, and its limits.

use super::crossing::{Mean, Sets};
use super::normal::{Coefficient, UNIT};
use super::{HockeyStick, check_epsilon, positive, rate};
use crate::Result;

/// `e^epsilon - 1`, also where it is too large for a number.
#[derive(Debug, Clone, Copy)]
struct Excess {
    epsilon: f64,
    linear: f64,
}

/// Above this `e^epsilon` is handled by its logarithm, and 1 beside it is lost.
const LARGE: f64 = 700.0;

/// What is above zero is at least this: a bound of zero says that the loss is bounded.
const LEAST: f64 = f64::from_bits(1);

/// Rounds a positive product of a few factors up or down.
const MARGIN: f64 = 10.0 * UNIT;

impl Excess {
    fn new(epsilon: f64) -> Self {
        Self { epsilon, linear: epsilon.exp_m1() }
    }

    /// `factor * (e^epsilon - 1 + addend)`, rounded down; both are at most 1 and not negative.
    fn times(self, factor: f64, addend: f64) -> Coefficient {
        if factor <= 0.0 {
            Coefficient::new(0.0)
        } else if self.epsilon <= LARGE {
            Coefficient::new(factor * (self.linear + addend) * (1.0 - MARGIN))
        } else {
            let logarithm = self.epsilon + factor.ln();
            Coefficient::from_logarithm(logarithm - MARGIN * (self.epsilon + factor.ln().abs()))
        }
    }

    /// `q - (e^epsilon - 1)(1 - q)`, rounded up.
    fn complement(self, q: f64) -> f64 {
        let taken = self.linear * (1.0 - q);
        if q >= 1.0 { 1.0 } else { (q - taken) + MARGIN * (q + taken) }
    }
}

/// One round of federated learning in which clients take part at random, and nobody sees which.
///
/// A client takes part with probability p; if it does, each of its elements is sampled with
/// probability q. Each sampled element adds a vector of norm at most 1, and the server adds
/// Gaussian noise of standard deviation sigma to the sum. The protected element belongs to one
/// client; d is a public upper bound of the number of that client's other elements.
///
/// The bound uses joint convexity over which of the other elements are sampled. The divergence is
/// at most a mean over i ~ Bin(d, q). Its terms measure how much one Gaussian exceeds a near one
/// and a share `c_i` of the far one, that of the client that stays away. This holds for any shares
/// of mean at most 1, and the best shares are taken. In each term, aligned gradients of full norm
/// are worst: seen from the single Gaussian, each shifted one is `exp(t Z - t^2/2)`, and a sum of
/// these is largest in convex order when they are comonotone. Theorem 4.1 of Hasircioglu and
/// Gunduz, "Privacy Amplification via Random Participation in Federated Learning", is the remove
/// bound without the positive part of the shares. It replaces the vectors before it uses convexity,
/// and is no upper bound.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RandomParticipation {
    client_rate: f64,
    sample_rate: f64,
    local_size: u64,
    noise_multiplier: f64,
}

impl RandomParticipation {
    /// Rates between 0 and this one are raised to this one, because their product must be a normal
    /// number. The divergence grows with either rate, so the bound still holds.
    pub const LEAST_RATE: f64 = 1e-150;

    /// The largest number of other elements.
    pub const LARGEST_LOCAL_SIZE: u64 = 10_000_000_000;

    /// Checks the parameters p, q, d and sigma (in units of the clipping norm).
    ///
    /// # Errors
    ///
    /// [`crate::Error::Accounting`] if a rate is not in [0, 1], the local size is above 10^10, or the
    /// noise multiplier is not a finite number above 0.
    pub fn new(
        client_rate: f64,
        sample_rate: f64,
        local_size: u64,
        noise_multiplier: f64,
    ) -> Result<Self> {
        if local_size > Self::LARGEST_LOCAL_SIZE {
            return Err(crate::Error::Accounting {
                argument: "local_size",
                value: local_size as f64,
                expected: "at most 10^10",
            });
        }
        let raised = |given: f64| if given > 0.0 { given.max(Self::LEAST_RATE) } else { given };
        Ok(Self {
            client_rate: raised(rate("client_rate", client_rate)?),
            sample_rate: raised(rate("sample_rate", sample_rate)?),
            local_size,
            noise_multiplier: positive("noise_multiplier", noise_multiplier)?,
        })
    }

    /// The divergence of the law with the element from the law without it, at a finite epsilon of
    /// at least 0.
    #[must_use]
    pub fn remove(&self, epsilon: f64) -> HockeyStick {
        let (p, q) = (self.client_rate, self.sample_rate);
        self.removed(epsilon).map_or(HockeyStick::NONE, |mean| {
            let [own, near, far] = mean.masses;
            HockeyStick {
                delta: mean.bound.clamp(LEAST, 1.0),
                p: ((1.0 - p) * far + p * (1.0 - q) * near + p * q * own).min(1.0),
                q: ((1.0 - p) * far + p * near).min(1.0),
            }
        })
    }

    /// The divergence of the law without the element from the law with it, at a finite epsilon of
    /// at least 0.
    #[must_use]
    pub fn add(&self, epsilon: f64) -> HockeyStick {
        let (p, q) = (self.client_rate, self.sample_rate);
        self.added(epsilon).map_or(HockeyStick::NONE, |mean| {
            let [own, near, far] = mean.masses;
            HockeyStick {
                delta: mean.bound.clamp(LEAST, 1.0),
                p: ((1.0 - p) * far + p * own).min(1.0),
                q: ((1.0 - p) * far + p * (1.0 - q) * own + p * q * near).min(1.0),
            }
        })
    }

    /// Tells whether some gradients reach the bounds of [`Self::remove`] and [`Self::add`]. These
    /// have all others aligned with the new one, or opposed to it. If the client that stays away
    /// counts for nothing (at an epsilon of 0, or if every client takes part), all others are zero.
    ///
    /// If every share is above zero, then seen from the client that stays away, all terms have the
    /// same event. So the mean of their positive parts is the positive part of the mean.
    ///
    /// # Errors
    ///
    /// [`crate::Error::Accounting`] for an epsilon that is negative or not finite.
    pub fn attained(&self, epsilon: f64) -> Result<[bool; 2]> {
        let epsilon = check_epsilon(epsilon)?;
        Ok([self.removed(epsilon), self.added(epsilon)]
            .map(|mean| mean.is_none_or(|mean| mean.shared)))
    }

    fn removed(&self, epsilon: f64) -> Option<Mean> {
        let (p, q) = (self.client_rate, self.sample_rate);
        let excess = Excess::new(epsilon);
        self.mean(p * q * (1.0 + MARGIN), excess.times(p, q), excess, 1)
    }

    fn added(&self, epsilon: f64) -> Option<Mean> {
        let (p, q) = (self.client_rate, self.sample_rate);
        let excess = Excess::new(epsilon);
        let single = p * excess.complement(q) * (1.0 + MARGIN);
        if p * q <= 0.0 {
            return None;
        }
        self.mean(single, excess.times(p * q * (1.0 - MARGIN), 1.0), excess, 0)
    }

    /// The mean over the sampled other elements; the client that stays away lies `i + offset`
    /// clipping norms from the one Gaussian.
    fn mean(&self, single: f64, near: Coefficient, excess: Excess, offset: u64) -> Option<Mean> {
        if single.is_nan() || single <= 0.0 {
            return None;
        }
        let single = single.min(1.0);
        let mut sets = Sets {
            trials: self.local_size,
            rate: self.sample_rate,
            single: Coefficient::new(single),
            near,
            far: excess.times(1.0 - self.client_rate, 0.0),
            shift: (1.0 / self.noise_multiplier).next_up(),
            offset,
        };
        if offset == 0 && (self.local_size == 0 || self.sample_rate <= 0.0) && !sets.far.is_zero() {
            // The client that stays away lies on the one Gaussian.
            let left = single - sets.far.linear;
            if left.is_nan() || left <= 0.0 {
                return None;
            }
            sets.single = Coefficient::new(left * (1.0 + 2.0 * UNIT));
            sets.far = Coefficient::new(0.0);
        }
        Some(sets.mean())
    }
}

/// Poisson sampling of single elements with the Gaussian mechanism, when everybody sees which
/// clients take part.
///
/// With a client rate of 1 this is local sampling only (every client takes part). For central
/// sampling, multiply both rates into the sample rate. With a client rate below 1 it is weak client
/// sampling, in which the adversary learns which clients take part: `delta = p * delta_local`. At a
/// sample rate of 1 it is the Gaussian mechanism itself (Balle and Wang 2018, Theorem 8).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PoissonSampling {
    client_rate: f64,
    local: RandomParticipation,
}

impl PoissonSampling {
    /// Checks the parameters.
    ///
    /// # Errors
    ///
    /// [`crate::Error::Accounting`] if a rate is not in [0, 1] or the noise multiplier is not a finite
    /// number above 0.
    pub fn new(client_rate: f64, sample_rate: f64, noise_multiplier: f64) -> Result<Self> {
        Ok(Self {
            client_rate: rate("client_rate", client_rate)?,
            local: RandomParticipation::new(1.0, sample_rate, 0, noise_multiplier)?,
        })
    }

    /// The divergence of the law with the element from the law without it.
    #[must_use]
    pub fn remove(&self, epsilon: f64) -> HockeyStick {
        self.outer(self.local.remove(epsilon))
    }

    /// The divergence of the law without the element from the law with it.
    #[must_use]
    pub fn add(&self, epsilon: f64) -> HockeyStick {
        self.outer(self.local.add(epsilon))
    }

    fn outer(&self, inner: HockeyStick) -> HockeyStick {
        let rate = self.client_rate;
        if rate >= 1.0 || rate <= 0.0 || inner.delta <= 0.0 {
            return if rate > 0.0 { inner } else { HockeyStick::NONE };
        }
        HockeyStick {
            // A product below the normal numbers may have been rounded down by half the least one.
            delta: (inner.delta * rate * (1.0 + 2.0 * UNIT)).next_up().min(1.0),
            p: inner.p * rate,
            q: inner.q * rate,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worst(mechanism: &RandomParticipation, epsilon: f64) -> f64 {
        mechanism.remove(epsilon).delta.max(mechanism.add(epsilon).delta)
    }

    #[test]
    fn published_noise_levels_are_reproduced() -> Result<()> {
        // The least noise for (0.015, 1e-6) of two scenarios, to five digits.
        for (p, q, d, noise) in [(0.001, 0.1, 30, 2.37328), (0.1, 0.001, 1000, 0.80866)] {
            let at = |sigma| Ok(worst(&RandomParticipation::new(p, q, d, sigma)?, 0.015));
            assert!(at(noise - 1e-5)? > 1e-6 && at(noise + 1e-5)? < 1e-6);
        }
        Ok(())
    }

    #[test]
    fn the_ends_of_the_range_are_the_other_schemes() -> Result<()> {
        for epsilon in [0.0, 1e-9, 0.02, 0.3, 2.0, 20.0, 800.0] {
            for sigma in [0.3, 1.0, 7.0] {
                let close = |left: HockeyStick, right: HockeyStick| {
                    let allowed = 1e-11 * right.delta + 1e-300;
                    assert!((left.delta - right.delta).abs() <= allowed, "{left:?} {right:?}");
                };
                let alone = RandomParticipation::new(0.2, 0.3, 0, sigma)?;
                let central = PoissonSampling::new(1.0, 0.2 * 0.3, sigma)?;
                close(alone.remove(epsilon), central.remove(epsilon));
                close(alone.add(epsilon), central.add(epsilon));
                let everyone = RandomParticipation::new(1.0, 0.3, 50, sigma)?;
                let local = PoissonSampling::new(1.0, 0.3, sigma)?;
                close(everyone.remove(epsilon), local.remove(epsilon));
                close(everyone.add(epsilon), local.add(epsilon));
                let many = RandomParticipation::new(0.2, 0.3, 10_000_000_000, sigma)?;
                let seen = PoissonSampling::new(0.2, 0.3, sigma)?;
                close(many.remove(epsilon), seen.remove(epsilon));
                close(many.add(epsilon), seen.add(epsilon));
            }
        }
        Ok(())
    }

    #[test]
    fn delta_is_the_difference_of_the_masses_of_its_event() -> Result<()> {
        let mechanism = RandomParticipation::new(0.3, 0.2, 20, 1.3)?;
        for epsilon in [0.0, 0.01, 0.1, 0.3] {
            for HockeyStick { delta, p, q } in [mechanism.remove(epsilon), mechanism.add(epsilon)] {
                assert!((p - epsilon.exp() * q - delta).abs() < 2e-12, "{epsilon}");
            }
        }
        Ok(())
    }

    #[test]
    fn what_is_above_zero_is_not_rounded_to_zero() -> Result<()> {
        for epsilon in [0.0, 20.0, 37.0, 40.0, 60.0, 1e5] {
            for rate in [5e-324, 1e-200, 0.1, 0.9] {
                assert!(PoissonSampling::new(rate, 0.1, 1.0)?.remove(epsilon).delta > 0.0);
                for d in [0, 5, 1000] {
                    let round = RandomParticipation::new(rate, rate, d, 1.0)?;
                    assert!(round.remove(epsilon).delta > 0.0, "{epsilon} {rate} {d}");
                }
            }
        }
        assert_eq!(PoissonSampling::new(0.0, 0.1, 1.0)?.remove(0.0), HockeyStick::NONE);
        Ok(())
    }

    #[test]
    fn delta_is_not_rounded_above_one() -> Result<()> {
        let almost_always = 1.0_f64.next_down();
        for sigma in [1e-300, 1e-8, 1e300] {
            let round = PoissonSampling::new(almost_always, 1.0, sigma)?;
            for side in [round.remove(0.0), round.add(0.0)] {
                assert!(side.delta <= 1.0, "{sigma} {side:?}");
            }
        }
        Ok(())
    }

    #[test]
    fn nothing_is_lost_at_the_ends_of_the_numbers() -> Result<()> {
        for (p, q) in [(0.0, 0.5), (0.5, 0.0), (1.0, 1.0), (1e-300, 1e-3), (0.5, 1.0)] {
            for d in [0, 1, 100_000_000, RandomParticipation::LARGEST_LOCAL_SIZE] {
                for sigma in [1e-300, 1e-9, 1.0, 1e9, 1e300] {
                    let mechanism = RandomParticipation::new(p, q, d, sigma)?;
                    for epsilon in [0.0, 1e-300, 1e-9, 1.0, 709.0, 1e9, 1e300] {
                        for side in [mechanism.remove(epsilon), mechanism.add(epsilon)] {
                            let HockeyStick { delta, p: first, q: second } = side;
                            let [one, other] =
                                [p, q].map(|r: f64| if r > 0.0 { r.max(1e-150) } else { r });
                            let most = one * other * 1.001 + 1e-300;
                            let label = format!("{p} {q} {d} {sigma} {epsilon} {side:?}");
                            assert!((0.0..=most).contains(&delta), "{label}");
                            assert!((0.0..=1.0).contains(&first), "{label}");
                            assert!((0.0..=1.0).contains(&second), "{label}");
                        }
                    }
                }
            }
        }
        Ok(())
    }
}
