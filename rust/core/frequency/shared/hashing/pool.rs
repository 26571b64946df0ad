//! A fixed, public set of hash functions that many reports share.

use rand::Rng;

use super::{Buckets, Modulus};
use crate::parallel::{self, chunk};
use crate::parameters::{DomainSize, Probability};
use crate::random::{AesStreams, Purpose, Streams, binomial, multinomial_uniform, uniform_below};
use crate::{Error, Result};

/// The polynomial `((a x + b) x + c) mod P`: the coefficients are residues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Parabola(pub(super) [u64; 3]);

impl Parabola {
    #[inline(always)]
    pub(super) fn at(self, modulus: Modulus, code: u64) -> u64 {
        let [a, b, c] = self.0;
        modulus.reduce(modulus.reduce(a * code + b) * code + c)
    }
}

/// Hash functions drawn from a public seed: parabolas modulo `2^31 - 1`, and buckets of residues.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::frequency) struct HashPool {
    buckets: Buckets,
    functions: Vec<Parabola>,
}

/// Codes whose support is added up together.
const TILE: usize = 4096;

/// The first of the streams that draw who takes part with which function, one for each part of the
/// domain. Those below draw reports.
const SCATTER: u64 = 1 << 55;

/// Parts of the domain that have cells of their own while nodes choose functions.
const PARTS: usize = 8;

/// Codes that are walked through side by side.
const SIDE: usize = 8;

impl HashPool {
    /// The largest number of functions.
    pub(in crate::frequency) const MAXIMUM_FUNCTIONS: u64 = 1 << 20;

    /// The largest number of buckets of all functions together.
    pub(in crate::frequency) const MAXIMUM_CELLS: u64 = 1 << 28;

    /// The largest number of codes, which are residues.
    pub(in crate::frequency) const MAXIMUM_DOMAIN: u64 = (1 << Modulus::BITS) - 1;

    /// The functions of a seed.
    ///
    /// `argument` is what the caller calls the number of functions.
    pub(in crate::frequency) fn new(
        argument: &'static str,
        functions: u64,
        buckets: u64,
        seed: u64,
        domain: DomainSize,
    ) -> Result<Self> {
        if !(1..=Self::MAXIMUM_FUNCTIONS).contains(&functions) {
            let expected = "an integer from 1 to 2^20";
            return Err(Error::Integer { argument, value: functions, expected });
        }
        if buckets.saturating_mul(functions) > Self::MAXIMUM_CELLS {
            let expected = "few enough that all hash functions together have at most 2^28 buckets";
            return Err(Error::Integer { argument, value: functions, expected });
        }
        if domain.get() > Self::MAXIMUM_DOMAIN {
            return Err(Error::DomainSize { value: domain.get(), maximum: Self::MAXIMUM_DOMAIN });
        }
        let modulus = Modulus::below_power(Modulus::BITS);
        let mut stream = AesStreams::from_seed(seed).stream(Purpose::HashPool, 0);
        let mut residue = || loop {
            let candidate = stream.next_u64() >> (u64::BITS - Modulus::BITS);
            if candidate < modulus.get() {
                return candidate;
            }
        };
        let functions =
            (0..functions).map(|_| Parabola([residue(), residue(), residue()])).collect();
        Ok(Self { buckets: Buckets::new(modulus, buckets), functions })
    }

    /// How many functions there are.
    pub(in crate::frequency) fn functions(&self) -> u64 {
        self.functions.len() as u64
    }

    /// The same as a length.
    pub(in crate::frequency) const fn functions_length(&self) -> usize {
        self.functions.len()
    }

    /// The buckets.
    pub(in crate::frequency) const fn buckets(&self) -> Buckets {
        self.buckets
    }

    /// The cells of all functions: one for each bucket of each.
    pub(in crate::frequency) fn cells(&self) -> usize {
        self.functions.len() * self.width()
    }

    /// The number of buckets as a length.
    #[expect(clippy::cast_possible_truncation, reason = "at most 2^28")]
    pub(in crate::frequency) const fn width(&self) -> usize {
        self.buckets.count() as usize
    }

    /// The bucket of a code of the domain under function `function`.
    #[inline(always)]
    pub(in crate::frequency) fn bucket(&self, function: u64, code: u64) -> u64 {
        let zero = Parabola([0; 3]);
        #[expect(clippy::cast_possible_truncation, reason = "at most 2^20")]
        let function = self.functions.get(function as usize).copied().unwrap_or(zero);
        self.buckets.of(function.at(self.buckets.modulus(), code))
    }

    /// For every code the sum over all functions of the cell of its bucket.
    ///
    /// The values of a parabola at equal distances are added up from their differences: three
    /// additions, one product and one look-up for each code and function.
    pub(in crate::frequency) fn gather(&self, cells: &[u64], domain: DomainSize) -> Vec<u64> {
        let mut support = vec![0; domain.len()];
        parallel::for_each_chunk(&mut support, TILE, |tile, sums| {
            let first = (tile * TILE) as u64;
            for (function, row) in self.functions.iter().zip(cells.chunks_exact(self.width())) {
                self.add_row(*function, row, first, sums);
            }
        });
        support
    }

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "a bucket is below the row's length")]
    fn add_row(&self, function: Parabola, row: &[u64], first: u64, sums: &mut [u64]) {
        let modulus = self.buckets.modulus();
        let side = SIDE as u64;
        // Differences over `SIDE` codes; those of the differences are all the same.
        let reduced = |code: u64| function.at(modulus, modulus.reduce(code));
        let minus = |left: u64, right: u64| modulus.once(left + modulus.get() - right);
        let mut at: [u64; SIDE] = core::array::from_fn(|lane| reduced(first + lane as u64));
        let mut slope: [u64; SIDE] =
            core::array::from_fn(|lane| minus(reduced(first + lane as u64 + side), at[lane]));
        let bend = modulus.reduce(function.0[0] * (2 * side * side));
        for sums in sums.chunks_mut(SIDE) {
            for (lane, sum) in sums.iter_mut().enumerate() {
                *sum += row.get(self.buckets.of(at[lane]) as usize).copied().unwrap_or(0);
            }
            for lane in 0..SIDE {
                at[lane] = modulus.once(at[lane] + slope[lane]);
                slope[lane] = modulus.once(slope[lane] + bend);
            }
        }
    }

    /// How many nodes of each cell there are, when each node takes part with probability `rate`
    /// and chooses a function uniformly: exact in law for these functions. The cost is proportional
    /// to the number of nodes or to that of codes times functions, whichever is less.
    pub(in crate::frequency) fn scatter<S: Streams>(
        &self,
        true_counts: &[u64],
        rate: Probability,
        streams: &S,
    ) -> Vec<u64> {
        let length = true_counts.len().div_ceil(PARTS).max(1);
        let parts = parallel::map(true_counts.len().div_ceil(length), |part| {
            let counts = &true_counts[chunk(part, length, true_counts.len())];
            let mut stream = streams.stream(Purpose::Simulation, SCATTER + part as u64);
            let mut cells = vec![0; self.cells()];
            let mut chosen = vec![0; self.functions.len()];
            for (code, &count) in ((part * length) as u64..).zip(counts) {
                let present = binomial(count, rate.get(), &mut stream);
                if present < self.functions() / 8 {
                    for _ in 0..present {
                        let function = uniform_below(self.functions(), &mut stream);
                        self.add_nodes(function, code, 1, &mut cells);
                    }
                } else {
                    chosen.fill(0);
                    multinomial_uniform(present, &mut chosen, &mut stream);
                    for (function, &count) in (0..).zip(&chosen) {
                        self.add_nodes(function, code, count, &mut cells);
                    }
                }
            }
            cells
        });
        let sum = |mut total: Vec<u64>, cells: Vec<u64>| {
            for (sum, term) in total.iter_mut().zip(cells) {
                *sum += term;
            }
            total
        };
        parts.into_iter().reduce(sum).unwrap_or_default()
    }

    /// The generator for the reports of nodes that chose function `function`, for simulations.
    pub(in crate::frequency) fn report_stream<S: Streams>(
        streams: &S,
        function: usize,
    ) -> S::Stream {
        streams.stream(Purpose::Simulation, function as u64)
    }

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "at most 2^28 cells")]
    fn add_nodes(&self, function: u64, code: u64, count: u64, cells: &mut [u64]) {
        let cell = function * self.buckets.count() + self.bucket(function, code);
        if let Some(cell) = cells.get_mut(cell as usize) {
            *cell += count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gathering_agrees_with_evaluating_every_function() -> Result<()> {
        for (size, functions, buckets) in [(2, 1, 2), (9, 3, 5), (4099, 4, 64), (9000, 2, 1000)] {
            let domain = DomainSize::new(size)?;
            let pool = HashPool::new("hashes", functions, buckets, 17, domain)?;
            let cells: Vec<u64> = (0..functions * buckets).map(|cell| cell * cell + 1).collect();
            let found = pool.gather(&cells, domain);
            for (code, &sum) in (0_u64..).zip(&found) {
                let expected: u64 = (0..functions)
                    .map(|function| {
                        let [a, b, c] = pool.functions[usize::try_from(function).unwrap_or(0)].0;
                        let (a, b, c, x) =
                            (u128::from(a), u128::from(b), u128::from(c), u128::from(code));
                        let prime = u128::from(pool.buckets.modulus().get());
                        let residue = (a * x * x + b * x + c) % prime;
                        let bucket = residue * u128::from(buckets) / prime;
                        let place = u128::from(function * buckets) + bucket;
                        cells[usize::try_from(place).unwrap_or(0)]
                    })
                    .sum();
                assert_eq!(sum, expected, "code {code}");
            }
        }
        Ok(())
    }

    #[test]
    fn the_last_codes_of_the_largest_domain_have_buckets() -> Result<()> {
        let domain = DomainSize::new(HashPool::MAXIMUM_DOMAIN)?;
        let pool = HashPool::new("hashes", 3, 7, 1, domain)?;
        let mut sums = [0; 11];
        let row = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000];
        let first = HashPool::MAXIMUM_DOMAIN - 11;
        for (function, parabola) in (0..).zip(&pool.functions) {
            let before = sums;
            pool.add_row(*parabola, &row, first, &mut sums);
            for ((code, after), before) in (first..).zip(sums).zip(before) {
                let power = u32::try_from(pool.bucket(function, code)).unwrap_or(99);
                assert_eq!(after - before, 10_u64.pow(power));
            }
        }
        assert!(
            HashPool::new("hashes", 1, 2, 0, DomainSize::new(HashPool::MAXIMUM_DOMAIN + 1)?)
                .is_err()
        );
        Ok(())
    }

    #[test]
    fn functions_depend_on_the_seed_alone() -> Result<()> {
        let domain = DomainSize::new(10)?;
        let pool = HashPool::new("hashes", 5, 8, 3, domain)?;
        assert_eq!(pool, HashPool::new("hashes", 5, 8, 3, domain)?);
        assert_ne!(pool, HashPool::new("hashes", 5, 8, 4, domain)?);
        assert_eq!(pool.functions, HashPool::new("hashes", 9, 4, 3, domain)?.functions[..5]);
        Ok(())
    }

    #[test]
    fn scattered_nodes_are_in_buckets_of_their_codes() -> Result<()> {
        let domain = DomainSize::new(6)?;
        let pool = HashPool::new("hashes", 4, 3, 3, domain)?;
        let streams = AesStreams::from_seed(1);
        for present in [3, 1_000_000] {
            let cells = pool.scatter(&[0, 0, 0, 0, 0, present], Probability::ONE, &streams);
            assert_eq!(cells.iter().sum::<u64>(), present);
            for (function, row) in (0..).zip(cells.chunks(3)) {
                let own = usize::try_from(pool.bucket(function, 5)).unwrap_or(9);
                assert!((0..3).all(|bucket| bucket == own || row[bucket] == 0));
                assert!(present < 100 || row[own].abs_diff(250_000) < 3_000);
            }
        }
        Ok(())
    }
}
