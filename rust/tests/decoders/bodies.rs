//! What the core reads that comes from elsewhere, on any bytes: reports, elements, elections.
//!
//! `main.rs` runs this on the files of `corpus`, and the programs of `fuzz` on whatever a fuzzer makes
//! of them. Each function panics where the core breaks its word: what it takes can be counted and
//! adds up, what it does not take is an error, and either way nothing else happens.

use core::fmt::Debug;

use turnout_core::Result;
use turnout_core::frequency::{
    BitStage, CountMeanSketch, DirectEncoding, FrequencyOracle, HadamardCountMeanSketch,
    HadamardResponse, LocalHashing, MemoizedDirect, MemoizedUnary, NodeProbabilities,
    PooledLocalHashing, ProjectiveGeometryResponse, Selection, SquareWave, SubsetSelection,
    SummationHistogram, Tally, UnaryEncoding,
};
use turnout_core::mean::{Bounds, Dimensions, Duchi, Hybrid, Mechanism, Piecewise};
use turnout_core::parameters::{DomainSize, Epsilon};
use turnout_core::random::AesStreams;
use turnout_core::sharing::{Element, PrimeField, ShareSum, two_stage_sums};

/// What is run on bytes.
pub(crate) type Target = fn(&[u8]);

/// All targets by their names.
pub(crate) const TARGETS: [(&str, Target); 4] =
    [("reports", reports), ("numbers", numbers), ("elements", elements), ("elections", elections)];

/// Bytes that are taken one after another, and zeros after the last.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let (taken, rest) = self.0.split_at(N.min(self.0.len()));
        self.0 = rest;
        let mut bytes = [0; N];
        bytes[..taken.len()].copy_from_slice(taken);
        bytes
    }

    fn byte(&mut self) -> u8 {
        u8::from_le_bytes(self.bytes())
    }

    fn short(&mut self) -> u16 {
        u16::from_le_bytes(self.bytes())
    }

    fn word(&mut self) -> u64 {
        u64::from_le_bytes(self.bytes())
    }

    fn float(&mut self) -> f64 {
        f64::from_le_bytes(self.bytes())
    }

    /// All the rest.
    fn items<T: Item>(&mut self) -> Vec<T> {
        let mut items = Vec::new();
        while !self.0.is_empty() {
            items.push(T::take(self));
        }
        items
    }
}

/// What reports and vectors are made of.
trait Item: Copy + Debug {
    fn take(input: &mut Input<'_>) -> Self;
}

macro_rules! item {
    ($($integer:ty),*) => {$(
        impl Item for $integer {
            fn take(input: &mut Input<'_>) -> Self {
                Self::from_le_bytes(input.bytes())
            }
        }
    )*};
}

item!(u8, u16, u32, u64, i32);

/// The value, or nothing of an error, whose text is made.
fn value<T>(result: Result<T>) -> Option<T> {
    result.map_err(|error| assert!(!error.to_string().is_empty())).ok()
}

/// Reports of every oracle: the bytes choose it, its parameters, and the reports.
pub(crate) fn reports(data: &[u8]) {
    value(reports_of(&mut Input(data)));
}

fn reports_of(input: &mut Input<'_>) -> Result<()> {
    let kind = input.byte();
    let form = input.byte();
    let epsilon = Epsilon::new(input.float())?;
    // A plan with large tables takes time and memory for them, whatever the reports are.
    let domain = DomainSize::new(u64::from(input.short() % 512))?;
    let (some, other) = (u64::from(input.short() % 512), u64::from(input.byte()));
    let first = Epsilon::new(epsilon.get() / 2.0)?;
    let stages = [BitStage::Optimized, BitStage::Symmetric];
    match kind % 17 {
        0 => direct(&DirectEncoding::new(epsilon, domain)?, form, input),
        1 => oracle(&UnaryEncoding::symmetric(epsilon, domain)?, form, input),
        2 => oracle(&UnaryEncoding::optimized(epsilon, domain)?, form, input),
        3 => oracle(&UnaryEncoding::threshold_histogram(epsilon, domain)?, form, input),
        4 => oracle(&SubsetSelection::new(epsilon, domain, None)?, form, input),
        5 => oracle(&SubsetSelection::new(epsilon, domain, Some(some))?, form, input),
        6 => oracle(&LocalHashing::new(epsilon, domain, some)?, form, input),
        7 => oracle(&PooledLocalHashing::new(epsilon, domain, some, other, 7)?, form, input),
        8 => oracle(&HadamardResponse::<u8>::new(epsilon, domain)?, form, input),
        9 => oracle(&HadamardResponse::<u16>::new(epsilon, domain)?, form, input),
        10 => oracle(&ProjectiveGeometryResponse::<u16>::new(epsilon, domain, None)?, form, input),
        11 => {
            oracle(
                &ProjectiveGeometryResponse::<u32>::new(epsilon, domain, Some(other))?,
                form,
                input,
            );
        }
        12 => oracle(&CountMeanSketch::new(epsilon, domain, other, some, 7)?, form, input),
        13 => oracle(&HadamardCountMeanSketch::new(epsilon, domain, other, some, 7)?, form, input),
        14 => oracle(&SummationHistogram::new(epsilon, domain)?, form, input),
        15 => oracle(&SquareWave::new(epsilon, domain)?, form, input),
        _ if form & 4 == 0 => oracle(&MemoizedDirect::new(domain, epsilon, first)?, form, input),
        _ => oracle(&MemoizedUnary::new(domain, epsilon, first, stages)?, form, input),
    }
    Ok(())
}

/// Rates from elsewhere for so many reports: any number, but mostly one that is a rate.
fn rates(input: &mut Input<'_>, reports: usize) -> Vec<f64> {
    let wild = input.float();
    (0..reports).map(|index| if index == 3 { wild } else { 1.0 / (1.0 + index as f64) }).collect()
}

/// Reports of direct encoding, which are codes.
fn direct(oracle: &DirectEncoding, form: u8, input: &mut Input<'_>) {
    let streams = AesStreams::from_seed(1);
    let codes: Vec<u16> = if form & 1 == 0 {
        input.items()
    } else {
        value(oracle.randomize::<_, u16, _>(&[0_u8; 9], &Selection::everyone(), &streams))
            .map_or_else(Vec::new, |reports| altered(reports.codes, input))
    };
    let inside = codes.iter().all(|&code| u64::from(code) < oracle.domain_size().get());
    assert_eq!(value(oracle.check(&codes)).is_some(), inside);
    assert_eq!(value(oracle.supports(&codes)).is_some(), inside);
    let tally = value(oracle.tally(&codes, None));
    assert_eq!(tally.map(|tally| tally.support.iter().sum()), inside.then_some(codes.len() as u64));
}

/// Reports with one item that is another.
fn altered<T: Item>(mut reports: Vec<T>, input: &mut Input<'_>) -> Vec<T> {
    if !input.0.is_empty() && !reports.is_empty() {
        let place = usize::from(input.short()) % reports.len();
        reports[place] = T::take(input);
    }
    reports
}

/// Reports that are any items, or genuine ones of which an item is another.
fn oracle<O: FrequencyOracle<Item: Item>>(oracle: &O, form: u8, input: &mut Input<'_>) {
    let width = oracle.width();
    let wild = (form & 2 != 0).then(|| rates(input, 9));
    let items: Vec<O::Item> = if form & 1 == 0 {
        input.items()
    } else {
        let streams = AesStreams::from_seed(1);
        value(oracle.randomize(&[0_u8; 9], &Selection::everyone(), &streams))
            .map_or_else(Vec::new, |reports| altered(reports.codes, input))
    };
    let received = items.len() / width;
    let tally = value(oracle.tally(&items, None));
    let taken = tally.is_some();
    assert_eq!(value(oracle.check(&items)).is_some(), taken);
    let bits = value(oracle.supports(&items));
    assert_eq!(bits.is_some(), taken);
    if let Some(tally) = tally {
        counted(oracle, &items, &tally, &bits.unwrap_or_default());
    }
    let Some(mut wild) = wild else { return };
    wild.truncate(received);
    let Some(rates) = value(NodeProbabilities::new(&wild)) else { return };
    let weighted = value(oracle.tally(&items, Some(rates)));
    assert_eq!(weighted.is_some(), taken && wild.len() == received);
    if let Some(sums) = weighted.and_then(|tally| tally.weighted) {
        let least = wild.iter().map(|rate| 1.0 / rate).sum::<f64>();
        let total = sums.total as f64 / 4_294_967_296.0;
        assert!((total - least).abs() <= 1e-9 * (1.0 + least), "{total} of {least}");
    }
}

/// Whether what was taken adds up as its reports say one by one.
fn counted<O: FrequencyOracle>(oracle: &O, items: &[O::Item], tally: &Tally, bits: &[u64]) {
    let width = oracle.width();
    assert_eq!(items.len() % width, 0, "not whole reports");
    assert_eq!(tally.received, (items.len() / width) as u64);
    let mut expected = vec![0_u64; oracle.counts()];
    let words = oracle.domain().len().div_ceil(64);
    for (index, report) in items.chunks_exact(width).enumerate() {
        oracle.scores(report, &mut |place, score| {
            expected[place] = expected[place].wrapping_add_signed(score);
        });
        let mut row = vec![0_u64; words];
        oracle.supported(report, &mut |code| row[code / 64] |= 1 << (code % 64));
        assert_eq!(bits[index * words..][..words], row);
    }
    assert_eq!(tally.support, expected);
}

/// Reports of numbers: cells, coordinates and rates.
pub(crate) fn numbers(data: &[u8]) {
    value(numbers_of(&mut Input(data)));
}

fn numbers_of(input: &mut Input<'_>) -> Result<()> {
    let (kind, form) = (input.byte(), input.byte());
    let epsilon = Epsilon::new(input.float())?;
    let bounds = Bounds::new(input.float(), input.float())?;
    let dimensions = Dimensions::new(u64::from(input.short()))?;
    match kind % 3 {
        0 => cells(&Duchi::new(epsilon, bounds, dimensions)?, form, input),
        1 => cells(&Piecewise::new(epsilon, bounds, dimensions)?, form, input),
        _ => cells(&Hybrid::new(epsilon, bounds, dimensions)?, form, input),
    }
    Ok(())
}

fn cells<M: Mechanism>(mechanism: &M, form: u8, input: &mut Input<'_>) {
    let sampled = mechanism.sampled();
    let wild = (form & 1 != 0).then(|| rates(input, usize::from(form >> 4)));
    let coordinates: Option<Vec<u16>> = (form & 2 != 0).then(|| {
        let count = usize::from(input.byte());
        (0..count).map(|_| input.short()).collect()
    });
    let items: Vec<u32> = input.items();
    let Some(rates) = value(wild.as_deref().map(NodeProbabilities::new).transpose()) else {
        return;
    };
    let Some(sums) = value(mechanism.tally(&items, coordinates.as_deref(), rates)) else { return };
    assert!(items.iter().all(|&cell| u64::from(cell) < mechanism.cells()));
    assert_eq!(sums.received, (items.len() / sampled) as u64);
    assert_eq!(sums.coordinates.iter().map(|one| one.seen).sum::<u64>(), items.len() as u64);
    let first: u128 = sums.coordinates.iter().map(|one| one.first).sum();
    assert_eq!(first, items.iter().map(|&cell| u128::from(cell)).sum());
}

/// Packed elements of a field, alone and added up.
pub(crate) fn elements(data: &[u8]) {
    let mut input = Input(data);
    let form = input.byte();
    let modulus = input.word() >> (input.byte() % 64);
    let found =
        if form & 1 == 0 { PrimeField::larger_than(modulus) } else { PrimeField::new(modulus) };
    let Some(field) = value(found) else { return };
    // As many as the bytes hold, or any number.
    let length = match form & 2 {
        0 => 8 * input.0.len() / field.bits() as usize,
        _ => usize::try_from(input.word()).unwrap_or(usize::MAX),
    };
    if field.width() == 32 {
        packed::<u32>(field, input.0, length);
        assert!(field.unpack::<u64>(input.0, length).is_err());
    } else {
        packed::<u64>(field, input.0, length);
        assert!(field.unpack::<u32>(input.0, length).is_err());
    }
}

fn packed<E: Element + Debug + PartialEq>(field: PrimeField, data: &[u8], length: usize) {
    let values = value(field.unpack::<E>(data, length));
    let fits = field.packed_bytes(length) == data.len();
    assert!(fits || values.is_none());
    if !fits {
        return;
    }
    let Some(mut sum) = value(ShareSum::<E>::new(field, length)) else { return };
    assert_eq!(value(sum.add_packed(data)).is_some(), values.is_some());
    let Some(values) = values else {
        assert_eq!(sum.count(), 0);
        return;
    };
    assert_eq!(field.pack(&values).as_deref(), Ok(data), "other bytes for the same elements");
    assert_eq!(sum.sum(), values);
    assert_eq!(sum.add(&values), Ok(()));
    assert_eq!(field.add(&values, &values), Ok(sum.finish()));
    let lifted = field.lift(&values);
    assert_eq!(lifted.and_then(|lifted| field.reduce::<E>(&lifted)), Ok(values));
}

/// Who is elected for which item, and who reports what.
pub(crate) fn elections(data: &[u8]) {
    let mut input = Input(data);
    let modulus = input.word();
    let [users, items, length] = [input.byte() % 32, input.byte() % 32, input.byte() % 32];
    let [users, items] = [usize::from(users), usize::from(items)];
    let codes: Vec<u32> = (0..users).map(|_| input.byte().into()).collect();
    let coins: Vec<u8> = (0..users).map(|_| input.byte()).collect();
    let sets: Vec<u32> = (0..users * usize::from(length)).map(|_| input.byte().into()).collect();
    // The offsets of a plausible election, or any numbers.
    let wild = input.byte();
    let mut last = 0_u64;
    let mut offsets = vec![last];
    for _ in 0..items {
        last = if wild == 255 { input.word() } else { last + u64::from(input.byte() % 8) };
        offsets.push(last);
    }
    let elected: Vec<u32> = input.0.iter().map(|&user| user.into()).collect();
    let streams = AesStreams::from_seed(1);
    let found = two_stage_sums(&codes, &coins, &sets, &offsets, &elected, modulus, &streams);
    let Some(found) = value(found) else { return };
    assert_eq!(found.sums.len(), elected.len());
    assert!(found.sums.iter().all(|&sum| sum < modulus));
    // The shares of an item add up to the number of those who report it, hold it and take part.
    for (item, pair) in offsets.windows(2).enumerate() {
        let place = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX);
        let sums = &found.sums[place(pair[0])..place(pair[1])];
        let total = sums.iter().fold(0, |total, &sum| (total + sum) % modulus);
        let size = usize::from(length);
        let holders = (0..users).filter(|&user| {
            let reported = &sets[user * size..][..size];
            coins[user] == 1 && codes[user] as usize == item && reported.contains(&codes[user])
        });
        assert_eq!(total, holders.count() as u64 % modulus, "item {item}");
    }
}
