use core::convert::Infallible;

use rand::TryRng;

use super::*;
use crate::frequency::{FrequencyOracle, Selection};
use crate::random::{AesStreams, Purpose, Streams};

/// Gives the words of a list, then zeros.
struct Given<'a>(&'a [u64]);

impl TryRng for Given<'_> {
    type Error = Infallible;
    fn try_next_u32(&mut self) -> core::result::Result<u32, Infallible> {
        Ok((self.try_next_u64()? >> 32) as u32)
    }
    fn try_next_u64(&mut self) -> core::result::Result<u64, Infallible> {
        let (first, rest) = self.0.split_first().map_or((0, self.0), |(&word, rest)| (word, rest));
        self.0 = rest;
        Ok(first)
    }
    fn try_fill_bytes(&mut self, _: &mut [u8]) -> core::result::Result<(), Infallible> {
        Ok(())
    }
}

impl Words for Given<'_> {}

fn tiny(epsilon: f64, size: u64, buckets: u64, bits: u32) -> Result<LocalHashing> {
    LocalHashing::with_bits(Epsilon::new(epsilon)?, DomainSize::new(size)?, buckets, bits)
}

fn codes_of<O: Randomizer>(oracle: &O, report: O::Item) -> Vec<usize> {
    let mut codes = Vec::new();
    oracle.supported(&[report], &mut |code| codes.push(code));
    codes
}

#[test]
fn every_report_has_the_likelihood_that_the_probabilities_say() -> Result<()> {
    for (size, buckets, bits) in [(7, 2, 3), (7, 3, 3), (5, 4, 3), (13, 6, 4), (3, 2, 2)] {
        let oracle = tiny(1.3, size, buckets, bits)?;
        let (own, other) = oracle.words();
        let (own, other) = (u128::from(own), u128::from(other));
        let prime = oracle.modulus();
        let coefficients = 1 << bits;
        // Over all functions and buckets, in units of one over P^2 and the accepted words.
        let mut reports = 0_u64;
        let mut together = vec![vec![0_u128; 13]; 13];
        for report in 0..(coefficients * coefficients) << oracle.widths.1 {
            if !oracle.valid(&[report]) {
                continue;
            }
            reports += 1;
            let (a, b, bucket) = oracle.parts(report);
            let hashed = |code: u64| (a * code + b) % prime * buckets / prime;
            let supported: Vec<u64> = (0..size).filter(|&code| hashed(code) == bucket).collect();
            let found = codes_of(&oracle, report);
            assert!(found.iter().map(|&code| code as u64).eq(supported.iter().copied()));
            for (code, row) in (0..size).zip(&mut together) {
                let likelihood = if supported.contains(&code) { own } else { other };
                for &code in &found {
                    row[code] += likelihood;
                }
            }
        }
        assert_eq!(reports, prime * prime * buckets);
        let total = u128::from(prime * prime) * (own + u128::from(buckets - 1) * other);
        let (p, q) = oracle.support_probabilities();
        for code in 0..usize::try_from(size).unwrap_or(0) {
            for third in 0..usize::try_from(size).unwrap_or(0) {
                let share = together[code][third] as f64 / total as f64;
                let expected = if code == third { p } else { q };
                assert!((share - expected).abs() < 1e-14, "{code}, {third}: {share}, {expected}");
                // Exactly the same for all codes, not only nearly.
                assert_eq!(together[code][third], together[0][usize::from(code != third)]);
            }
        }
    }
    Ok(())
}

#[test]
fn a_report_is_made_of_the_words_as_documented() -> Result<()> {
    let oracle = tiny(1.0, 7, 3, 3)?;
    for (a, b) in (0..7).flat_map(|a| (0..7).map(move |b| (a, b))) {
        for code in 0..7 {
            // A coefficient of 7 is none: that word is drawn again. Word 0 keeps the bucket.
            for words in
                [[a | b << 3, 0, 0], [7 | b << 3, a | b << 3, 0], [a | 7 << 3, a | b << 3, 0]]
            {
                let mut report = [0];
                oracle.report(&[code], &mut report, &mut Given(&words));
                let bucket = (a * code + b) % 7 * 3 / 7;
                assert_eq!(report[0], a << 5 | b << 2 | bucket);
            }
            // The last word that is accepted replaces the bucket by the last one.
            let (own, other) = oracle.words();
            let mut report = [0];
            let last = own - other + 3 * other - 1;
            oracle.report(&[code], &mut report, &mut Given(&[a | b << 3, last]));
            assert_eq!(report[0], a << 5 | b << 2 | 2);
        }
    }
    Ok(())
}

#[test]
fn counting_agrees_with_looking_at_every_report_and_code() -> Result<()> {
    for (size, buckets, nodes) in
        [(2, 2, 1), (17, 3, 700), (4095, 2, 9), (4097, 5, 300), (9001, 1000, 257)]
    {
        let oracle = LocalHashing::new(Epsilon::new(2.0)?, DomainSize::new(size)?, buckets)?;
        let codes: Vec<u32> =
            (0..nodes).map(|node| node * 7919 % u32::try_from(size).unwrap_or(1)).collect();
        let streams = AesStreams::from_seed(size);
        let reports = oracle.randomize(&codes, &Selection::everyone(), &streams)?;
        let mut expected = vec![0; oracle.domain.len()];
        for &report in &reports.codes {
            assert!(oracle.valid(&[report]));
            let (a, b, bucket) = oracle.parts(report);
            for (code, count) in (0_u128..).zip(&mut expected) {
                let residue = (u128::from(a) * code + u128::from(b)) % u128::from(oracle.modulus());
                let hashed = residue * u128::from(buckets) / u128::from(oracle.modulus());
                *count += u64::from(hashed == u128::from(bucket));
            }
            let here = codes_of(&oracle, report);
            assert!(here.windows(2).all(|pair| pair[0] < pair[1]));
        }
        assert_eq!(oracle.tally(&reports.codes, None)?.support, expected);
        let mut visited = vec![0; oracle.domain.len()];
        for &report in &reports.codes {
            for code in codes_of(&oracle, report) {
                visited[code] += 1;
            }
        }
        assert_eq!(visited, expected);
        assert_eq!(oracle.collect(&codes, &Selection::everyone(), &streams)?.support, expected);
    }
    Ok(())
}

#[test]
fn reports_that_cannot_be_are_refused() -> Result<()> {
    let oracle = LocalHashing::new(Epsilon::new(1.0)?, DomainSize::new(100)?, 3)?;
    assert_eq!((oracle.report_bits(), oracle.modulus()), (64, (1 << 31) - 1));
    let prime = oracle.modulus();
    for (report, valid) in [
        (0, true),
        ((prime - 1) << 33 | (prime - 1) << 2 | 2, true),
        (3, false),
        (prime << 2, false),
        (prime << 33, false),
        (u64::MAX, false),
    ] {
        assert_eq!(oracle.valid(&[report]), valid, "{report:#x}");
    }
    let binary = LocalHashing::binary(Epsilon::new(1.0)?, DomainSize::new(100)?)?;
    assert_eq!(binary.report_bits(), 63);
    assert!(!binary.valid(&[1 << 63]));
    let refused = binary.tally(&[0, 1, 1 << 63, 0], None);
    assert!(matches!(refused, Err(Error::Report { index: 2, .. })));
    Ok(())
}

#[test]
fn domains_and_buckets_beyond_the_functions_are_refused() -> Result<()> {
    let make =
        |size, buckets| LocalHashing::new(Epsilon::new(1.0)?, DomainSize::new(size)?, buckets);
    assert!(make((1 << 29) - 3, 21).is_ok());
    let Err(error) = make((1 << 29) - 2, 21) else {
        return Err(Error::CountOverflow { argument: "nothing refused" });
    };
    assert!(error.to_string().contains("CountMeanSketch"), "{error}");
    assert!(make(1 << 31, 2).is_err());
    assert!(matches!(make(10, 1), Err(Error::Integer { .. })));
    assert!(matches!(make(10, (1 << 20) + 1), Err(Error::Integer { .. })));
    let widest = make(10, 1 << 20)?;
    assert_eq!((widest.modulus(), widest.report_bits()), ((1 << 22) - 3, 64));
    Ok(())
}

#[test]
fn a_pool_counts_what_its_reports_support() -> Result<()> {
    let size = 4200;
    let oracle = PooledLocalHashing::new(Epsilon::new(1.0)?, DomainSize::new(size)?, 3, 37, 5)?;
    let codes: Vec<u16> = (0..1500).map(|node| node % 4200).collect();
    let streams = AesStreams::from_seed(2);
    let reports = oracle.randomize(&codes, &Selection::everyone(), &streams)?;
    let mut expected = vec![0; 4200];
    let mut own = 0;
    for (&report, &code) in reports.codes.iter().zip(&codes) {
        assert!(report < 111);
        let supported = codes_of(&oracle, report);
        own += i32::from(supported.contains(&usize::from(code)));
        for code in supported {
            expected[code] += 1;
        }
    }
    assert_eq!(oracle.tally(&reports.codes, None)?.support, expected);
    // 1500 p within 5 standard deviations.
    let p = oracle.support_probabilities().0;
    assert!((f64::from(own) - 1500.0 * p).abs() < 5.0 * (1500.0 * p * (1.0 - p)).sqrt());
    assert!(oracle.valid(&[110]) && !oracle.valid(&[111]));
    assert_eq!(oracle.collect(&codes, &Selection::everyone(), &streams)?.support, expected);
    Ok(())
}

#[test]
fn functions_are_uniform_and_the_same_for_all_codes() -> Result<()> {
    let oracle = tiny(0.5, 7, 3, 3)?;
    let mut seen = [0_u32; 49];
    let mut stream = AesStreams::from_seed(9).stream(Purpose::Report, 0);
    let (mut reports, codes) = ([0; 250], core::array::from_fn::<u64, 250, _>(|i| i as u64 % 7));
    for _ in 0..400 {
        oracle.report(&codes, &mut reports, &mut stream);
        for report in reports {
            let (a, b, _) = oracle.parts(report);
            seen[usize::try_from(7 * a + b).unwrap_or(49)] += 1;
        }
    }
    // Chi-square with 48 degrees of freedom at alpha = 1e-6.
    let mean = 100_000.0 / 49.0;
    let statistic: f64 = seen.iter().map(|&n| (f64::from(n) - mean).powi(2) / mean).sum();
    assert!(statistic < 112.0, "{statistic}");
    Ok(())
}
