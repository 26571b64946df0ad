//! Shares of two-stage sampling among elected users.

use crate::parallel;
use crate::random::{Purpose, Streams, Words, uniform_below};
use crate::{Error, Result};

/// What the elected users hold after all shares have arrived, and how much work it took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TwoStageSums {
    /// The sum of the shares that each elected user received, in the order of the elections. The
    /// sums of an item's elected users add up to its count, modulo the modulus.
    pub sums: Vec<u64>,
    /// The number of uniform field elements that the reporting users drew.
    pub draws: u64,
    /// The number of additions and subtractions. A reporting user makes one for each element drawn,
    /// because the last share is the bit less all others. An elected user makes one for each share.
    pub additions: u64,
}

/// Shares the reports of two-stage sampling among elected users, and sums the shares that each
/// receives. These are lines 12 to 20 of algorithm 3 of Yang, Tjuawinata, Lam, Zhu, Zhao, "Fair and
/// differentially private distributed frequency estimation".
///
/// User `i` holds item `codes[i]`, takes part if `coins[i]` is one, and reports the items of row
/// `i` of `sets`. All rows have the same length and ascend. For item `j` the users
/// `elected[offsets[j]..offsets[j + 1]]` are elected. Each user who reports the item draws a
/// uniform number below `modulus` for each elected user but the last. The last gets the bit less
/// the sum of these numbers; the bit is one if the user takes part and holds the item. Every share
/// is really drawn; none is kept.
///
/// Runs on the current rayon pool, in parallel over items. The result depends on `streams` alone.
///
/// # Errors
///
/// [`Error::LengthMismatch`] if the lengths do not fit together. [`Error::Entry`] if a coin is not
/// 0 or 1, a code or an item is outside the domain, or a row does not ascend. The same error if the
/// offsets do not ascend from 0 to the number of elected users, or an elected user does not exist
/// or is elected twice for an item. [`Error::Accounting`] if the modulus is not from 2 to 2^61.
/// [`Error::NobodyElected`] if an item is reported and nobody is elected for it.
///
/// ```
/// use turnout_core::random::AesStreams;
/// use turnout_core::sharing::two_stage_sums;
///
/// // Three users report two of three items each; users 0 and 1 are elected for every item.
/// let (codes, coins, sets) = ([2, 0, 2], [1, 1, 1], [0, 2, 0, 1, 1, 2]);
/// let (offsets, elected) = ([0, 2, 4, 6], [0, 1, 0, 1, 0, 1]);
/// let streams = AesStreams::from_operating_system()?;
/// let found = two_stage_sums(&codes, &coins, &sets, &offsets, &elected, 5, &streams)?;
/// let counts: Vec<u64> = found.sums.chunks(2).map(|sums| (sums[0] + sums[1]) % 5).collect();
/// assert_eq!(counts, [1, 0, 2]);
/// assert_eq!((found.draws, found.additions), (6, 18));
/// # Ok::<(), turnout_core::Error>(())
/// ```
pub fn two_stage_sums<S: Streams>(
    codes: &[u32],
    coins: &[u8],
    sets: &[u32],
    offsets: &[u64],
    elected: &[u32],
    modulus: u64,
    streams: &S,
) -> Result<TwoStageSums> {
    if !(2..=1 << 61).contains(&modulus) {
        let expected = "an integer from 2 to 2^61";
        return Err(Error::Accounting { argument: "modulus", value: modulus as f64, expected });
    }
    let elections = elections(offsets, elected, codes.len())?;
    let reports = Reports::new(codes, coins, sets, elections.len())?;
    let mut draws = 0;
    let mut additions = 0;
    for (item, users) in elections.iter().enumerate() {
        let reporters = reports.of(item).len();
        if users.is_empty() && reporters > 0 {
            return Err(Error::NobodyElected { item, reporters });
        }
        let (users, reporters) = (users.len() as u64, reporters as u64);
        draws += reporters * users.saturating_sub(1);
        additions += reporters * (users + users.saturating_sub(1));
    }
    let sums = parallel::map(elections.len(), |item| {
        let mut rng = streams.stream(Purpose::ElectedShares, item as u64);
        share_item(reports.of(item), elections[item].len(), modulus, &mut rng)
    });
    Ok(TwoStageSums { sums: sums.concat(), draws, additions })
}

/// The users elected for each item.
fn elections<'a>(offsets: &[u64], elected: &'a [u32], users: usize) -> Result<Vec<&'a [u32]>> {
    let entry = |index, expected| Err(Error::Entry { argument: "offsets", index, expected });
    let &[first, .., last] = offsets else {
        return Err(Error::Accounting {
            argument: "the length of offsets",
            value: offsets.len() as f64,
            expected: "one more than the number of items",
        });
    };
    if first != 0 {
        return entry(0, "0");
    }
    if last != elected.len() as u64 {
        return entry(offsets.len() - 1, "the number of elected users");
    }
    let mut elections = Vec::with_capacity(offsets.len() - 1);
    let mut rest = elected;
    for (index, pair) in (1..).zip(offsets.windows(2)) {
        let length = pair[1].checked_sub(pair[0]).and_then(|length| usize::try_from(length).ok());
        let Some((now, later)) = length.and_then(|length| rest.split_at_checked(length)) else {
            return entry(index, "at least the one before and at most the last");
        };
        elections.push(now);
        rest = later;
    }
    // One more than the item for which a user was last elected.
    let mut seen = vec![0; users];
    let entries =
        (1..).zip(&elections).flat_map(|(item, users)| users.iter().map(move |&user| (item, user)));
    for (index, (item, user)) in entries.enumerate() {
        let expected = match seen.get_mut(user as usize) {
            None => "the index of a user",
            Some(last) if *last == item => "a user who is not yet elected for the item",
            Some(last) => {
                *last = item;
                continue;
            }
        };
        return Err(Error::Entry { argument: "elected", index, expected });
    }
    Ok(elections)
}

/// The bits that users report for each item.
struct Reports {
    offsets: Vec<usize>,
    bits: Vec<u8>,
}

impl Reports {
    fn new(codes: &[u32], coins: &[u8], sets: &[u32], items: usize) -> Result<Self> {
        let users = codes.len();
        if coins.len() != users {
            return Err(Error::LengthMismatch {
                left: "codes",
                left_length: users,
                right: "coins",
                right_length: coins.len(),
            });
        }
        let reported = sets.len().checked_div(users).unwrap_or(0);
        if reported * users != sets.len() {
            return Err(Error::LengthMismatch {
                left: "codes",
                left_length: users,
                right: "sets",
                right_length: sets.len(),
            });
        }
        let refuse = |argument, index, expected| Err(Error::Entry { argument, index, expected });
        if let Some(index) = codes.iter().position(|&code| code as usize >= items) {
            return refuse("codes", index, "an item of the domain");
        }
        if let Some(index) = coins.iter().position(|&coin| coin > 1) {
            return refuse("coins", index, "0 or 1");
        }
        let mut offsets = vec![0; items + 1];
        for (index, &item) in sets.iter().enumerate() {
            if index % reported > 0 && sets[index - 1] >= item {
                return refuse("sets", index, "above the item before it");
            }
            match offsets.get_mut(item as usize + 1) {
                Some(count) => *count += 1,
                None => return refuse("sets", index, "an item of the domain"),
            }
        }
        for item in 0..items {
            offsets[item + 1] += offsets[item];
        }
        let mut bits = vec![0; sets.len()];
        let mut next = offsets.clone();
        let rows = sets.chunks_exact(reported.max(1));
        for ((&code, &coin), set) in codes.iter().zip(coins).zip(rows) {
            for &item in set {
                let position = &mut next[item as usize];
                bits[*position] = u8::from(coin == 1 && code == item);
                *position += 1;
            }
        }
        Ok(Self { offsets, bits })
    }

    fn of(&self, item: usize) -> &[u8] {
        &self.bits[self.offsets[item]..self.offsets[item + 1]]
    }
}

/// What each of the elected users has after all reporters shared their bits.
fn share_item<R: Words>(bits: &[u8], elected: usize, modulus: u64, rng: &mut R) -> Vec<u64> {
    let mut sums = vec![0; elected];
    let Some((last, others)) = sums.split_last_mut() else { return sums };
    if let Ok(modulus) = u32::try_from(modulus) {
        let mut shares = Shares::new(modulus);
        for &bit in bits {
            // At most 2^32 users: no sum reaches 2^64.
            let drawn = shares.add(others, rng);
            *last += (u64::from(bit) + u64::from(modulus) - drawn) % u64::from(modulus);
        }
        for sum in &mut sums {
            *sum %= u64::from(modulus);
        }
    } else {
        for &bit in bits {
            let mut share = u64::from(bit);
            for sum in &mut *others {
                let drawn = uniform_below(modulus, rng);
                *sum = (*sum + drawn) % modulus;
                share = (share + modulus - drawn) % modulus;
            }
            *last = (*last + share) % modulus;
        }
    }
    sums
}

/// Words drawn at once.
const BLOCK: usize = 128;

/// Uniform numbers below a modulus of 32 bits, two of each word: multiply and reject, as
/// [`uniform_below`].
struct Shares {
    modulus: u32,
    /// Products whose low half is below this are drawn again: `2^32` modulo the modulus.
    floor: u32,
    words: [u64; BLOCK],
    values: [u32; 2 * BLOCK],
}

impl Shares {
    fn new(modulus: u32) -> Self {
        let floor = modulus.wrapping_neg() % modulus;
        Self { modulus, floor, words: [0; BLOCK], values: [0; 2 * BLOCK] }
    }

    /// Adds a number to each sum, and gives the sum of the numbers modulo the modulus.
    fn add<R: Words>(&mut self, sums: &mut [u64], rng: &mut R) -> u64 {
        let mut total = 0;
        for sums in sums.chunks_mut(2 * BLOCK) {
            let words = &mut self.words[..sums.len().div_ceil(2)];
            rng.fill_words(words);
            let (pairs, _) = self.values.as_chunks_mut();
            let mut least = u32::MAX;
            for ([one, other], &word) in pairs.iter_mut().zip(&*words) {
                let low;
                (*one, low) = product(word & u64::from(u32::MAX), self.modulus);
                let high;
                (*other, high) = product(word >> 32, self.modulus);
                least = least.min(low).min(high);
            }
            if least < self.floor {
                self.draw_again(sums.len(), rng);
            }
            for (sum, &value) in sums.iter_mut().zip(&self.values) {
                *sum += u64::from(value);
                total += u64::from(value);
            }
        }
        total % u64::from(self.modulus)
    }

    #[cold]
    fn draw_again<R: Words>(&mut self, length: usize, rng: &mut R) {
        for (index, value) in self.values.iter_mut().enumerate().take(length) {
            let word = self.words[index / 2] >> (32 * (index % 2)) & u64::from(u32::MAX);
            let (mut drawn, mut low) = product(word, self.modulus);
            while low < self.floor {
                (drawn, low) = product(rng.next_u64() >> 32, self.modulus);
            }
            *value = drawn;
        }
    }
}

/// The high and the low half of a product with a number below 2^32.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the high and the low half")]
const fn product(word: u64, modulus: u32) -> (u32, u32) {
    let product = word * modulus as u64;
    ((product >> 32) as u32, product as u32)
}

#[cfg(test)]
mod tests {
    use rayon::ThreadPoolBuilder;

    use super::*;
    use crate::noise::tests::check_law;
    use crate::parameters::DomainSize;
    use crate::random::AesStreams;
    use crate::sharing::SetSampler;

    struct Round {
        codes: Vec<u32>,
        coins: Vec<u8>,
        sets: Vec<u32>,
        offsets: Vec<u64>,
        elected: Vec<u32>,
    }

    impl Round {
        /// As many users are elected as report, the first ones.
        fn new(users: u32, size: u32, reported: u32) -> Result<Self> {
            let streams = AesStreams::from_seed(u64::from(users));
            let codes: Vec<u32> = (0..users).map(|user| user * user % size).collect();
            let sampler =
                SetSampler::adaptive(DomainSize::new(size.into())?, reported.into(), 3.0)?;
            let (coins, sets) = sampler.draw(&codes, 0.7, &streams)?;
            let mut offsets = vec![0];
            let mut elected = Vec::new();
            for item in 0..size {
                let count = sets.iter().filter(|&&reported| reported == item).count();
                elected.extend(0..u32::try_from(count).unwrap_or(0));
                offsets.push(elected.len() as u64);
            }
            Ok(Self { codes, coins, sets, offsets, elected })
        }

        fn sums(&self, modulus: u64, streams: &AesStreams) -> Result<TwoStageSums> {
            let Self { codes, coins, sets, offsets, elected } = self;
            two_stage_sums(codes, coins, sets, offsets, elected, modulus, streams)
        }

        fn counts(&self) -> Vec<u64> {
            let reported = self.sets.len() / self.codes.len();
            let mut counts = vec![0; self.offsets.len() - 1];
            for (user, &code) in self.codes.iter().enumerate() {
                let set = &self.sets[user * reported..][..reported];
                if self.coins[user] == 1 && set.contains(&code) {
                    counts[code as usize] += 1;
                }
            }
            counts
        }
    }

    #[test]
    fn the_sums_of_an_item_add_up_to_its_count() -> Result<()> {
        for (users, size, reported) in [(700, 7, 3), (40, 30, 12), (5, 2, 1), (1, 3, 2)] {
            let round = Round::new(users, size, reported)?;
            let counts = round.counts();
            for modulus in
                [2, 3, 1009, 4_294_967_291, 1 << 32, (1 << 32) + 15, 3_000_000_019, 1 << 61]
            {
                let found = round.sums(modulus, &AesStreams::from_seed(1))?;
                assert_eq!(found.sums.len(), round.elected.len());
                assert!(found.sums.iter().all(|&sum| sum < modulus));
                let mut draws = 0;
                let mut rest = &found.sums[..];
                for (item, pair) in round.offsets.windows(2).enumerate() {
                    let (sums, later) =
                        rest.split_at(usize::try_from(pair[1] - pair[0]).unwrap_or(0));
                    rest = later;
                    let total = sums.iter().fold(0, |total, sum| (total + sum) % modulus);
                    assert_eq!(total, counts[item] % modulus);
                    let length = pair[1] - pair[0];
                    draws += length * length.saturating_sub(1);
                }
                // As many are elected as report.
                assert_eq!(found.draws, draws);
                assert_eq!(found.additions, 2 * draws + found.sums.len() as u64);
            }
        }
        Ok(())
    }

    #[test]
    fn all_sums_but_one_are_uniform() {
        // One reporter, with either bit, and three elected: all pairs of sums are equally likely.
        for (modulus, cells) in [(3_u64, 9), (2, 4), (5, 25)] {
            for (left_out, coin) in [(0, 0), (0, 1), (1, 1), (2, 0), (2, 1)] {
                let mut observed = vec![0_u64; cells];
                for round in 0..20_000 {
                    let streams = AesStreams::from_seed(round);
                    let mut rng = streams.stream(Purpose::ElectedShares, 0);
                    let mut others = share_item(&[coin], 3, modulus, &mut rng);
                    assert_eq!(others.iter().sum::<u64>() % modulus, u64::from(coin));
                    others.remove(left_out);
                    observed[usize::try_from(others[0] * modulus + others[1]).unwrap_or(0)] += 1;
                }
                check_law(&observed, &vec![1.0 / cells as f64; cells]);
            }
        }
    }

    #[test]
    fn numbers_below_a_modulus_are_exactly_uniform() {
        // As many low halves are accepted for every value: ceil((2^32 (v + 1) - floor) / q) less
        // ceil((2^32 v - floor) / q), counted at the ends of the range of each value.
        for modulus in [2_u32, 3, 7, 1009, 65_537, 3_000_000_019, u32::MAX] {
            let shares = Shares::new(modulus);
            let (q, floor) = (u64::from(modulus), u64::from(shares.floor));
            let expected = ((1_u64 << 32) - floor) / q;
            for value in [0, 1, q / 3, q / 2, q - 2, q - 1] {
                let first = ((value << 32) + floor).div_ceil(q);
                let last = (((value + 1) << 32) - 1) / q;
                assert_eq!(last + 1 - first, expected, "{modulus} {value}");
                for word in [first, last] {
                    let (high, low) = product(word, modulus);
                    assert_eq!(u64::from(high), value);
                    assert!(low >= shares.floor);
                }
                if let Some(before) = first.checked_sub(1) {
                    let (high, low) = product(before, modulus);
                    assert!(low < shares.floor || u64::from(high) < value);
                }
            }
        }
        // Many rejections: without them every other value would come twice as often.
        let mut rng = AesStreams::from_seed(5).stream(Purpose::ElectedShares, 0);
        let modulus = 2_863_311_531; // two thirds of 2^32
        let mut sums = vec![0; 300_000];
        let drawn = Shares::new(modulus).add(&mut sums, &mut rng);
        assert_eq!(drawn, sums.iter().sum::<u64>() % u64::from(modulus));
        let mut observed = vec![0_u64; 22];
        for sum in sums {
            let cell = 2 * (sum * 11 / u64::from(modulus)) + sum % 2;
            observed[usize::try_from(cell).unwrap_or(0)] += 1;
        }
        check_law(&observed, &[1.0 / 22.0; 22]);
    }

    #[test]
    fn threads_do_not_matter() -> Result<()> {
        let round = Round::new(300, 20, 9)?;
        let run = || round.sums(307, &AesStreams::from_seed(1));
        let expected = run()?;
        for threads in [1, 3] {
            if let Ok(pool) = ThreadPoolBuilder::new().num_threads(threads).build() {
                assert_eq!(pool.install(run)?, expected);
            }
        }
        assert_ne!(round.sums(307, &AesStreams::from_seed(2))?.sums, expected.sums);
        Ok(())
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let streams = AesStreams::from_seed(1);
        let run = |codes: &[u32], coins: &[u8], sets: &[u32], offsets: &[u64], elected: &[u32]| {
            two_stage_sums(codes, coins, sets, offsets, elected, 5, &streams).map_err(|error| {
                match error {
                    Error::Entry { argument, index, .. } => format!("{argument}[{index}]"),
                    Error::NobodyElected { item, reporters } => format!("{item}: {reporters}"),
                    Error::LengthMismatch { right, .. } => right.to_owned(),
                    other => other.to_string(),
                }
            })
        };
        let refused = |found: core::result::Result<TwoStageSums, String>, reason: &str| {
            assert_eq!(found.err().as_deref(), Some(reason));
        };
        let (codes, coins, sets, offsets, elected) =
            ([0, 1], [1, 0], [0, 1, 1, 2], [0, 1, 3, 4], [0, 0, 1, 1]);
        assert!(run(&codes, &coins, &sets, &offsets, &elected).is_ok());
        refused(run(&[0, 3], &coins, &sets, &offsets, &elected), "codes[1]");
        refused(run(&codes, &[1, 2], &sets, &offsets, &elected), "coins[1]");
        refused(run(&codes, &[1], &sets, &offsets, &elected), "coins");
        refused(run(&codes, &coins, &sets[1..], &offsets, &elected), "sets");
        refused(run(&codes, &coins, &[0, 1, 2, 1], &offsets, &elected), "sets[3]");
        refused(run(&codes, &coins, &[1, 1, 1, 2], &offsets, &elected), "sets[1]");
        refused(run(&codes, &coins, &[0, 1, 1, 3], &offsets, &elected), "sets[3]");
        refused(run(&codes, &coins, &sets, &[1, 1, 3, 4], &elected), "offsets[0]");
        refused(run(&codes, &coins, &sets, &[0, 1, 3, 3], &elected), "offsets[3]");
        refused(run(&codes, &coins, &sets, &[0, 5, 3, 4], &elected), "offsets[1]");
        refused(run(&codes, &coins, &sets, &[0, 3, 1, 4], &elected), "offsets[2]");
        refused(run(&codes, &coins, &sets, &offsets, &[0, 0, 2, 1]), "elected[2]");
        refused(run(&codes, &coins, &sets, &offsets, &[0, 1, 1, 1]), "elected[2]");
        refused(run(&codes, &coins, &sets, &[0, 1, 1, 4], &[0, 0, 1, 1]), "elected[3]");
        refused(run(&codes, &coins, &sets, &[0, 2, 2, 4], &[0, 1, 0, 1]), "1: 2");
        assert!(run(&codes, &coins, &sets, &[], &[]).is_err());
        assert!(run(&[], &[], &[], &[0, 0], &[]).is_ok());
        assert!(run(&[], &[], &[1], &[0, 0], &[]).is_err());
        for modulus in [0, 1, (1 << 61) + 1] {
            let found =
                two_stage_sums(&codes, &coins, &sets, &offsets, &elected, modulus, &streams);
            assert!(found.is_err());
        }
    }
}
