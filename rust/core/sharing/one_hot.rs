//! The shares of many users at once; only the sums are kept.

use core::sync::atomic::{AtomicUsize, Ordering};

use rand::Rng;

use super::elements::Element;
use super::expansion::SEED_BYTES;
use super::field::PrimeField;
use super::shares::check_parties;
use super::sums::Lanes;
use crate::frequency::Code;
use crate::parallel;
use crate::parameters::DomainSize;
use crate::random::{Bernoulli, Purpose, Streams};
use crate::{Error, Result};

/// Users of one chunk, which has random streams of its own: few, since a user may share with
/// thousands of parties.
const CHUNK: usize = 64;

/// A round in which every user shares one vector among the same parties. It is the one-hot vector
/// of the user's code if the coin says so, and zeros otherwise.
///
/// It draws all coins and shares as separate users would, but drops each share once it is added.
///
/// ```
/// use turnout_core::parameters::DomainSize;
/// use turnout_core::random::AesStreams;
/// use turnout_core::sharing::{OneHotSharing, OneHotSums, PrimeField};
///
/// let field = PrimeField::larger_than(6)?;
/// let round = OneHotSharing::new(field, DomainSize::new(3)?, 2, 1.0)?.compressed();
/// let sums: OneHotSums<u32> = round.run(&[0_u32, 1, 1, 1, 2, 0], &AesStreams::from_seed(1))?;
/// assert_eq!(field.reconstruct(&sums.shares, 3)?, [2, 3, 1]);
/// # Ok::<(), turnout_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct OneHotSharing {
    field: PrimeField,
    domain: DomainSize,
    parties: usize,
    /// Nothing if no user takes part.
    coin: Option<Bernoulli>,
    compressed: bool,
}

/// What the parties hold at the end, and how much work the protocol took.
///
/// The counts are field operations of the protocol. They include making each user's last share,
/// although a round in memory skips that (the sum of all last shares follows from the other sums).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OneHotSums<E> {
    /// The sum of the shares of each party: row-major, one row for each party.
    pub shares: Vec<E>,
    /// The number of coins tossed by the users: one each.
    pub coins: u64,
    /// The number of uniform elements drawn: `N` for each user and each party but the last.
    pub draws: u128,
    /// The number of additions of elements. To make the last share, each user adds `N` for each
    /// other share. To add up what it receives, each party adds `N` for each user but one.
    pub additions: u128,
}

impl OneHotSharing {
    /// Makes a round over a domain. Each user takes part with probability `rate`, and draws the
    /// shares of all parties but the last as elements.
    ///
    /// # Errors
    ///
    /// [`Error::Integer`] for fewer than two parties, or more than 2^32 elements in all;
    /// [`Error::Accounting`] for a rate that is not in [0, 1].
    pub fn new(field: PrimeField, domain: DomainSize, parties: usize, rate: f64) -> Result<Self> {
        check_parties(parties, domain.len())?;
        if !(0.0..=1.0).contains(&rate) {
            let expected = "a probability in [0, 1]";
            return Err(Error::Accounting { argument: "rate", value: rate, expected });
        }
        let coin = if rate > 0.0 { Some(Bernoulli::new(rate)?) } else { None };
        Ok(Self { field, domain, parties, coin, compressed: false })
    }

    /// Returns the same round with seeds instead of all shares but the last.
    #[must_use]
    pub const fn compressed(self) -> Self {
        Self { compressed: true, ..self }
    }

    /// Runs the round for the users that hold `codes`, on the current rayon pool.
    ///
    /// It needs memory for the sums of all parties in each thread. The result depends on `streams`
    /// alone. Users `64 i` to `64 i + 63` toss their coins one after the other from the stream of
    /// [`Purpose::Participation`] with index `i`. They draw shares, or seeds of 32 bytes, from the
    /// stream of [`Purpose::Share`].
    ///
    /// # Errors
    ///
    /// [`Error::CodeOutsideDomain`] for a code outside the domain, whether its user takes part or
    /// not; [`Error::ElementWidth`] if elements of the field are not of type `E`.
    pub fn run<E: Element, C: Code, S: Streams>(
        &self,
        codes: &[C],
        streams: &S,
    ) -> Result<OneHotSums<E>> {
        self.field.expect_width::<E>()?;
        if !C::all_below(codes, self.domain.get()) {
            return Err(crate::frequency::outside("codes", codes, self.domain));
        }
        let chunks = codes.len().div_ceil(CHUNK);
        let workers = parallel::threads().clamp(1, chunks.max(1));
        let next = AtomicUsize::new(0);
        let parts = parallel::map(workers, |_| {
            let mut part = Part::new(self);
            loop {
                let chunk = next.fetch_add(1, Ordering::Relaxed);
                let Some(users) = codes.chunks(CHUNK).nth(chunk) else { return part };
                part.add::<E, C, S>(self, users, streams, chunk as u64);
            }
        });
        let total = parts.into_iter().reduce(Part::merge::<E>);
        Ok(self.finish(codes.len(), &total.unwrap_or_else(|| Part::new(self))))
    }

    /// The number of elements that a user draws.
    const fn drawn(&self) -> usize {
        (self.parties - 1) * self.domain.len()
    }

    fn finish<E: Element>(&self, users: usize, total: &Part) -> OneHotSums<E> {
        let (length, q) = (self.domain.len(), self.field.modulus());
        let mut shares: Vec<E> = total.drawn.elements();
        let mut others = Lanes::new(self.field, length);
        for share in shares.chunks(length) {
            others.make_room();
            others.add_at(0, share);
        }
        let others: Vec<E> = others.elements();
        let last = total.held.iter().zip(others);
        shares.extend(last.map(|(held, other)| E::minus(E::cut(held % q), other, E::cut(q))));

        let [n, m, elements] = [users, self.parties, length].map(|number| number as u128);
        OneHotSums {
            shares,
            coins: users as u64,
            draws: n * (m - 1) * elements,
            additions: (n * (m - 1) + m * n.saturating_sub(1)) * elements,
        }
    }
}

/// What one worker adds up.
struct Part {
    /// The shares of all parties but the last, one after the other.
    drawn: Lanes,
    /// The secrets: how many users that take part hold each code.
    held: Vec<u64>,
}

impl Part {
    fn new(round: &OneHotSharing) -> Self {
        Self { drawn: Lanes::new(round.field, round.drawn()), held: vec![0; round.domain.len()] }
    }

    fn add<E: Element, C: Code, S: Streams>(
        &mut self,
        round: &OneHotSharing,
        users: &[C],
        streams: &S,
        chunk: u64,
    ) {
        let mut coins = streams.stream(Purpose::Participation, chunk);
        let mut stream = streams.stream(Purpose::Share, chunk);
        let length = round.domain.len();
        for user in users {
            if round.coin.is_some_and(|coin| coin.draw(&mut coins)) {
                #[expect(clippy::cast_possible_truncation, reason = "a code of the domain")]
                let position = user.index() as usize;
                self.held[position] += 1;
            }
            self.drawn.make_room();
            if round.compressed {
                for party in 0..round.parties - 1 {
                    let mut seed = [0; SEED_BYTES];
                    stream.fill_bytes(&mut seed);
                    self.drawn.add_expansion::<E>(party * length, length, &seed);
                }
            } else {
                self.drawn.add_uniform::<E, _>(0, round.drawn(), &mut stream);
            }
        }
    }

    fn merge<E: Element>(mut self, other: Self) -> Self {
        self.drawn.make_room();
        self.drawn.add_at::<E>(0, &other.drawn.elements());
        self.held.iter_mut().zip(other.held).for_each(|(held, more)| *held += more);
        self
    }
}

#[cfg(test)]
mod tests {
    use rayon::ThreadPoolBuilder;

    use super::*;
    use crate::random::AesStreams;

    const SIZE: usize = 7;

    fn codes(users: usize) -> Vec<u32> {
        (0..users).map(|user| u32::try_from(user * user % 5).unwrap_or(0)).collect()
    }

    /// The round with every share of every user in memory.
    fn by_user<E: Element>(
        round: &OneHotSharing,
        codes: &[u32],
        streams: &AesStreams,
    ) -> Result<Vec<E>> {
        let (field, parties) = (round.field, round.parties);
        let mut received = vec![Vec::new(); parties];
        for (chunk, users) in (0..).zip(codes.chunks(CHUNK)) {
            let mut coins = streams.stream(Purpose::Participation, chunk);
            let mut stream = streams.stream(Purpose::Share, chunk);
            for &code in users {
                let mut secret = [E::default(); SIZE];
                if round.coin.is_some_and(|coin| coin.draw(&mut coins)) {
                    secret[code as usize] = E::cut(1);
                }
                let mut shares = Vec::new();
                if round.compressed {
                    let compressed = field.share_compressed(&secret, parties, &mut stream)?;
                    for seed in &compressed.seeds {
                        let mut share = [E::default(); SIZE];
                        field.expand(seed, &mut share)?;
                        shares.extend(share);
                    }
                    shares.extend(compressed.explicit);
                } else {
                    shares = field.share(&secret, parties, &mut stream)?;
                }
                for (received, share) in received.iter_mut().zip(shares.chunks(SIZE)) {
                    received.extend_from_slice(share);
                }
            }
        }
        let sums: Result<Vec<Vec<E>>> = received.iter().map(|rows| field.sum(rows, SIZE)).collect();
        Ok(sums?.concat())
    }

    fn agree<E: Element>(field: PrimeField) -> Result<()> {
        let streams = AesStreams::from_seed(5);
        let domain = DomainSize::new(SIZE as u64)?;
        for users in [0, 1, CHUNK, 3 * CHUNK + 5] {
            let codes = codes(users);
            for parties in [2, 3, 20] {
                for rate in [0.0, 0.4, 1.0] {
                    let plain = OneHotSharing::new(field, domain, parties, rate)?;
                    for round in [plain, plain.compressed()] {
                        let sums = round.run::<E, _, _>(&codes, &streams)?;
                        assert_eq!(sums.shares, by_user::<E>(&round, &codes, &streams)?);
                        let total = field.reconstruct(&sums.shares, SIZE)?;
                        let received: u64 = total.iter().map(|count| count.value()).sum();
                        if round.coin.is_none() {
                            assert_eq!(received, 0);
                        } else if rate > 0.5 {
                            for (code, count) in (0_u32..).zip(&total) {
                                let held = codes.iter().filter(|&&own| own == code).count();
                                assert_eq!(count.value(), held as u64);
                            }
                        }
                    }
                }
            }
        }
        Ok(())
    }

    #[test]
    fn the_sums_are_those_of_users_that_share_one_by_one() -> Result<()> {
        agree::<u32>(PrimeField::new(211)?)?;
        agree::<u32>(PrimeField::new(4_294_967_291)?)?;
        agree::<u64>(PrimeField::new((1 << 61) - 1)?)
    }

    #[test]
    fn the_result_does_not_depend_on_the_number_of_threads() -> Result<()> {
        let codes = codes(20 * CHUNK + 1);
        let streams = AesStreams::from_seed(6);
        let round =
            OneHotSharing::new(PrimeField::new(2003)?, DomainSize::new(SIZE as u64)?, 9, 0.5)?;
        let mut results = Vec::new();
        for threads in [1, 2, 5] {
            if let Ok(pool) = ThreadPoolBuilder::new().num_threads(threads).build() {
                results.push(pool.install(|| round.run::<u32, _, _>(&codes, &streams))?);
            }
        }
        assert_eq!(results.len(), 3);
        assert!(results.windows(2).all(|pair| pair[0] == pair[1]));
        Ok(())
    }

    #[test]
    fn users_take_part_at_the_rate() -> Result<()> {
        // Five comparisons at alpha = 1e-6 together.
        let users = 200_000_usize;
        let field = PrimeField::larger_than(users as u64)?;
        let round = OneHotSharing::new(field, DomainSize::new(SIZE as u64)?, 2, 0.3)?;
        let codes: Vec<u32> = (0..users).map(|user| u32::try_from(user % 5).unwrap_or(0)).collect();
        let sums = round.run::<u32, _, _>(&codes, &AesStreams::from_seed(7))?;
        let total = field.reconstruct(&sums.shares, SIZE)?;
        let held = users as f64 / 5.0;
        for &count in &total[..5] {
            let distance = (f64::from(count) - 0.3 * held).abs();
            assert!(distance < 5.2 * (held * 0.3 * 0.7).sqrt(), "{total:?}");
        }
        assert_eq!(total[5..], [0, 0]);
        Ok(())
    }

    #[test]
    fn work_is_that_of_the_protocol() -> Result<()> {
        // Table 1 of the fair paper: with parties = users, each draws (n - 1) N elements and makes
        // 2 (n - 1) N additions.
        let users = 50_u128;
        let round =
            OneHotSharing::new(PrimeField::new(53)?, DomainSize::new(SIZE as u64)?, 50, 0.5)?;
        let sums = round.run::<u32, _, _>(&codes(50), &AesStreams::from_seed(8))?;
        assert_eq!(sums.coins, 50);
        assert_eq!(sums.draws, users * (users - 1) * SIZE as u128);
        assert_eq!(sums.additions, users * 2 * (users - 1) * SIZE as u128);
        Ok(())
    }

    #[test]
    fn bad_input_is_refused() -> Result<()> {
        let (field, domain) = (PrimeField::new(53)?, DomainSize::new(7)?);
        for parties in [0, 1, usize::MAX, 1 << 30] {
            let error = OneHotSharing::new(field, domain, parties, 0.5).err();
            assert!(matches!(error, Some(Error::Integer { argument: "parties", .. })));
        }
        for rate in [-0.1, 1.1, f64::NAN] {
            let error = OneHotSharing::new(field, domain, 2, rate).err();
            assert!(matches!(error, Some(Error::Accounting { argument: "rate", .. })));
        }
        let round = OneHotSharing::new(field, domain, 2, 0.0)?;
        let streams = AesStreams::from_seed(9);
        let error = round.run::<u32, _, _>(&[0_u32, 7, 1], &streams).err();
        assert!(matches!(
            error,
            Some(Error::CodeOutsideDomain { argument: "codes", index: 1, .. })
        ));
        assert!(round.run::<u64, _, _>(&[0_u32], &streams).is_err());
        Ok(())
    }
}
