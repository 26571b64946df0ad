//! Many hypergeometric numbers at once.

use rand::Rng;

use super::binomial;
use super::binomial::uniform;

/// The law of how many marked items a uniform set of so many items holds.
///
/// The masses are those of the mode times exact ratios of neighbours, multiplied up in double
/// precision; those below 2^-140 of the mode's are left out.
///
/// ```ignore
/// let mut law = Hypergeometric::default();
/// law.set(3, 5, 10);
/// law.spread(1_000_000, &mut stream, |marked, sets| counts[marked] += sets);
/// ```
#[derive(Debug, Default)]
pub(crate) struct Hypergeometric {
    /// The likeliest first.
    outcomes: Vec<Outcome>,
}

#[derive(Debug)]
struct Outcome {
    marked: usize,
    /// In units of the mode's.
    mass: f64,
    /// The masses of this one and of all that follow, the smallest added first.
    rest: f64,
}

impl Hypergeometric {
    /// Masses below this part of the mode's are left out: fewer than 2^64 sets times the outcomes
    /// of any domain make one of them with a probability below 2^-50.
    const LEAST: f64 = 1.0 / (1_u128 << 70) as f64 / (1_u128 << 70) as f64;

    /// So many sets are faster drawn one by one, and those that are fewer than half of the outcomes.
    const ONE_BY_ONE: u64 = 40;

    /// Becomes the law for uniform sets of `drawn` of `population` items, of which `marked` are
    /// marked: neither number is larger than the population.
    pub(crate) fn set(&mut self, drawn: usize, marked: usize, population: usize) {
        // Those that are not marked and not in the set; at least none, by the bounds of the number.
        let others = |both: usize| population + both - drawn - marked;
        let least = (drawn + marked).saturating_sub(population);
        let mode = (drawn + 1) * (marked + 1) / (population + 2);
        let mode = mode.clamp(least, drawn.min(marked));
        let one_more = |both: usize| {
            let ways = (marked - both) as f64 * (drawn - both) as f64;
            ways / ((both + 1) as f64 * others(both + 1) as f64)
        };
        let one_less = |both: usize| {
            let ways = both as f64 * others(both) as f64;
            ways / ((marked - both + 1) as f64 * (drawn - both + 1) as f64)
        };
        self.outcomes.clear();
        self.outcomes.push(Outcome { marked: mode, mass: 1.0, rest: 0.0 });
        let (mut high, mut above) = (mode, one_more(mode));
        let (mut low, mut below) = (mode, one_less(mode));
        while above.max(below) > Self::LEAST {
            if above >= below {
                high += 1;
                self.outcomes.push(Outcome { marked: high, mass: above, rest: 0.0 });
                above *= one_more(high);
            } else {
                low -= 1;
                self.outcomes.push(Outcome { marked: low, mass: below, rest: 0.0 });
                below *= one_less(low);
            }
        }
        let mut sum = 0.0;
        for outcome in self.outcomes.iter_mut().rev() {
            sum += outcome.mass;
            outcome.rest = sum;
        }
    }

    /// Draws `sets` sets, and visits how many of them hold how many marked items.
    ///
    /// One binomial for each number, the likeliest first, until few sets are left; those are drawn
    /// one by one.
    pub(crate) fn spread<R: Rng>(&self, sets: u64, rng: &mut R, mut visit: impl FnMut(usize, u64)) {
        let mut left = sets;
        for (place, outcome) in self.outcomes.iter().enumerate() {
            let following = &self.outcomes[place..];
            if following.len() == 1 {
                visit(outcome.marked, left);
                return;
            }
            if left < Self::ONE_BY_ONE + following.len() as u64 / 2 {
                for _ in 0..left {
                    let below = uniform(rng) * outcome.rest;
                    let index = following.partition_point(|outcome| outcome.rest > below);
                    visit(following[index.saturating_sub(1)].marked, 1);
                }
                return;
            }
            let hits = binomial(left, outcome.mass / outcome.rest, rng);
            visit(outcome.marked, hits);
            left -= hits;
        }
    }
}

#[cfg(test)]
mod tests {
    use num_bigint::BigUint;
    use num_rational::Ratio;
    use num_traits::{One, ToPrimitive};

    use super::*;
    use crate::noise::tests::check_law;
    use crate::random::{AesStreams, Purpose, Streams};

    fn ways(chosen: usize, all: usize) -> BigUint {
        (0..chosen).fold(BigUint::one(), |ways, next| ways * (all - next) / (next + 1))
    }

    /// All masses, from 0 to the number drawn, in exact rationals.
    fn exact(drawn: usize, marked: usize, population: usize) -> Vec<f64> {
        let sets = ways(drawn, population);
        let mass = |both: usize| {
            let with = if both > marked { BigUint::ZERO } else { ways(both, marked) };
            let rest = drawn - both;
            let others = population - marked;
            let without = if rest > others { BigUint::ZERO } else { ways(rest, others) };
            Ratio::new(with * without, sets.clone()).to_f64().unwrap_or(f64::NAN)
        };
        (0..=drawn).map(mass).collect()
    }

    fn law(drawn: usize, marked: usize, population: usize) -> Hypergeometric {
        let mut law = Hypergeometric::default();
        // What it was before does not matter.
        law.set(7, 8, 20);
        law.set(drawn, marked, population);
        law
    }

    #[test]
    fn the_masses_agree_with_exact_rationals() {
        for (drawn, marked, population) in [
            (0, 0, 0),
            (0, 4, 9),
            (9, 4, 9),
            (4, 0, 9),
            (4, 9, 9),
            (1, 1, 2),
            (3, 5, 10),
            (8, 9, 11),
            (40, 60, 100),
            (90, 95, 100),
            (500, 300, 1000),
            (700, 20, 3000),
        ] {
            let exact = exact(drawn, marked, population);
            let found = law(drawn, marked, population);
            let mode = exact.iter().copied().fold(0.0, f64::max);
            let mut left_out = exact.clone();
            for outcome in &found.outcomes {
                let mass = outcome.mass / found.outcomes[0].rest;
                let label = format!("{drawn} {marked} {population}: {}", outcome.marked);
                assert!((mass / exact[outcome.marked] - 1.0).abs() < 1e-12, "{label}: {mass}");
                left_out[outcome.marked] = 0.0;
            }
            assert!(left_out.iter().all(|&mass| mass <= 1.01 * Hypergeometric::LEAST * mode));
            let falling = found.outcomes.windows(2).all(|pair| pair[0].mass >= pair[1].mass);
            assert!(falling && (found.outcomes[0].mass - 1.0).abs() < 1e-15);
        }
    }

    #[test]
    fn sets_fit_their_masses_one_by_one_and_together() {
        for (case, (drawn, marked, population)) in
            [(3, 5, 10), (1, 1, 2), (40, 60, 100), (90, 95, 100)].into_iter().enumerate()
        {
            let (law, exact) = (law(drawn, marked, population), exact(drawn, marked, population));
            for sets in [1, 11, 42, 1000] {
                let mut stream =
                    AesStreams::from_seed(sets).stream(Purpose::Simulation, case as u64);
                let mut observed = vec![0; drawn + 1];
                // How often so many of the sets have the likeliest number.
                let likeliest = law.outcomes[0].marked;
                let mut together = [0; 43];
                for _ in 0..400_000 / sets {
                    let mut likely = 0;
                    let mut all = 0;
                    law.spread(sets, &mut stream, |marked, sets| {
                        observed[marked] += sets;
                        all += sets;
                        likely += if marked == likeliest { sets } else { 0 };
                    });
                    assert_eq!(all, sets);
                    together[usize::try_from(likely).unwrap_or(0).min(42)] += 1;
                }
                check_law(&observed, &exact);
                if sets <= 42 {
                    let p = exact[likeliest];
                    let masses: Vec<f64> = (0..=42_i32)
                        .map(|hits| {
                            let sets = i32::try_from(sets).unwrap_or(0);
                            if hits > sets {
                                return 0.0;
                            }
                            let ways = (0..hits).fold(1.0, |ways, next| {
                                ways * f64::from(sets - next) / f64::from(next + 1)
                            });
                            ways * p.powi(hits) * (1.0 - p).powi(sets - hits)
                        })
                        .collect();
                    check_law(&together, &masses);
                }
            }
        }
    }

    #[test]
    fn sets_without_number_have_the_mean_and_the_spread() {
        let (drawn, marked, population) = (300, 500, 1200);
        let law = law(drawn, marked, population);
        let mut stream = AesStreams::from_seed(1).stream(Purpose::Simulation, 0);
        let sets = 1_000_000_000_000_u64;
        let mut squares = 0.0;
        let share = marked as f64 / population as f64;
        let mean = drawn as f64 * share;
        let variance = mean * (1.0 - share) * (population - drawn) as f64 / (population - 1) as f64;
        let runs = 4000;
        let mut sums = 0.0;
        for _ in 0..runs {
            let mut sum = 0.0;
            law.spread(sets, &mut stream, |marked, sets| {
                sum += (marked as f64 - mean) * sets as f64;
            });
            let score = sum / (variance * sets as f64).sqrt();
            sums += score;
            squares += score * score;
        }
        let runs = f64::from(runs);
        assert!(sums.abs() < 5.2 * runs.sqrt(), "{sums}");
        assert!((squares - runs).abs() < 5.2 * (2.0 * runs).sqrt(), "{squares}");
    }
}
