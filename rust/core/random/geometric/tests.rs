use core::convert::Infallible;

use rand::TryRng;

use super::*;
use crate::Result;
use crate::random::{AesStreams, Purpose, Streams};

/// Gives the words of a list, then zeros or ones.
struct Given {
    words: Vec<u64>,
    then: u64,
}

impl TryRng for Given {
    type Error = Infallible;
    fn try_next_u32(&mut self) -> core::result::Result<u32, Infallible> {
        Ok((self.try_next_u64()? >> 32) as u32)
    }
    fn try_next_u64(&mut self) -> core::result::Result<u64, Infallible> {
        Ok(if self.words.is_empty() { self.then } else { self.words.remove(0) })
    }
    fn try_fill_bytes(&mut self, _: &mut [u8]) -> core::result::Result<(), Infallible> {
        Ok(())
    }
}

impl Words for Given {}

/// The digit of a word, and of what follows it.
fn digit(table: &Table, rate: Probability, word: u64, then: u64) -> usize {
    let mut rest = Given { words: vec![word << 32], then };
    table.draw(word >> 32, &mut rest, |bits| stay_probability(rate, bits))
}

fn single(rate: f64) -> Result<(Table, Probability)> {
    let rate = Probability::new(rate)?;
    match Skips::new(rate).digits {
        Digits::One(table) | Digits::Two { low: table, .. } => Ok((table, rate)),
        Digits::None => Err(crate::Error::CountOverflow { argument: "rate" }),
    }
}

#[test]
fn thresholds_are_the_exact_cumulative_probabilities() -> Result<()> {
    // An independent computation with exact rationals: p = m / 2^53.
    for rate in [0.9, 0.5, 0.25, 0.1, 0.03] {
        let (table, _) = single(rate)?;
        let (mantissa, exponent) = decompose(rate);
        let shift = exponent.unsigned_abs();
        let stay = (BigUint::from(1_u32) << shift) - mantissa;
        for (index, &threshold) in table.thresholds.iter().enumerate() {
            let exponent = u32::try_from(index + 1).unwrap_or(u32::MAX);
            let unit = BigUint::from(1_u32) << (shift * u64::from(exponent));
            let exact = ((&unit - stay.pow(exponent)) << 64_u32) / unit;
            assert_eq!(BigUint::from(threshold), exact, "rate {rate}, digit {index}");
        }
    }
    Ok(())
}

#[test]
fn low_digits_are_the_exact_conditional_probabilities() -> Result<()> {
    let rate = 0.01;
    let (table, _) = single(rate)?;
    let (mantissa, exponent) = decompose(rate);
    let shift = exponent.unsigned_abs();
    let stay = (BigUint::from(1_u32) << shift) - mantissa;
    let unit = BigUint::from(1_u32) << (256 * shift);
    let full = &unit - stay.pow(256);
    for (index, &threshold) in table.thresholds.iter().enumerate() {
        let exponent = u32::try_from(index + 1).unwrap_or(u32::MAX);
        let gone = stay.pow(exponent) << (shift * u64::from(256 - exponent));
        let exact = ((&unit - gone) << 64_u32) / &full;
        assert_eq!(BigUint::from(threshold), exact, "digit {index}");
    }
    Ok(())
}

#[test]
fn a_word_on_a_boundary_is_settled_by_the_words_that_follow() -> Result<()> {
    for rate in [0.3, 0.05, 0.01] {
        let (table, rate) = single(rate)?;
        // Not digit 0: its boundary is the rate itself, a short binary fraction.
        for index in [1, table.length() / 2, table.length() - 1] {
            let word = table.thresholds[index];
            let (below, above) =
                (digit(&table, rate, word, 0), digit(&table, rate, word, u64::MAX));
            assert_eq!((below, above), (index, index + 1));
            // The upper half is the boundary's, the lower one beside it.
            let (less, more) = (digit(&table, rate, word - 1, 0), digit(&table, rate, word + 1, 0));
            assert_eq!((less, more), (index, index + 1));
        }
    }
    // 1/2: the boundary is the threshold itself, so the word on it is always beyond.
    let (table, rate) = single(0.5)?;
    assert_eq!(digit(&table, rate, 1 << 63, 0), 1);
    Ok(())
}

#[test]
fn the_guide_never_skips_a_digit() -> Result<()> {
    for rate in [0.999, 0.5, 0.1, 0.02, 0.001, 1e-9, 1e-300] {
        let (table, rate) = single(rate)?;
        for step in 0..8192_u64 {
            for low in [0, 0x7_1234_5678_9abc, (1 << 51) - 1] {
                let word = (step << 51) | low;
                let slow = table.thresholds.partition_point(|&threshold| threshold <= word);
                if !table.thresholds.contains(&word) {
                    assert_eq!(digit(&table, rate, word, 0), slow);
                }
            }
        }
    }
    Ok(())
}

#[test]
fn every_position_is_selected_at_the_rate() -> Result<()> {
    // Positions 0, 1, 255, 256, 257 and the last of a chunk, at alpha = 1e-6 (z = 4.9) for
    // each of the 36 comparisons together (z = 5.6).
    let streams = AesStreams::from_seed(2024);
    let mut selected = Vec::new();
    for (case, rate) in [0.9, 0.3, 0.05, 0.01, 0.002, 1.0].into_iter().enumerate() {
        let skips = Skips::new(Probability::new(rate)?);
        let watched = [0_u16, 1, 255, 256, 257, 599];
        let mut counts = [0_u32; 6];
        let runs = 40_000;
        let mut stream = streams.stream(Purpose::Participation, case as u64);
        for _ in 0..runs {
            skips.select(600, &mut stream, &mut selected);
            for (count, position) in counts.iter_mut().zip(watched) {
                *count += u32::from(selected.binary_search(&position).is_ok());
            }
        }
        let deviation = (f64::from(runs) * rate * (1.0 - rate)).sqrt();
        for count in counts {
            let distance = (f64::from(count) - f64::from(runs) * rate).abs();
            assert!(distance <= 5.6 * deviation, "rate {rate}: {counts:?}");
        }
    }
    Ok(())
}

#[test]
fn the_number_selected_is_binomial_in_mean_and_variance() -> Result<()> {
    let streams = AesStreams::from_seed(11);
    let mut selected = Vec::new();
    for (case, rate) in [0.4, 0.04, 0.004, 0.000_1].into_iter().enumerate() {
        let skips = Skips::new(Probability::new(rate)?);
        let mut stream = streams.stream(Purpose::Participation, case as u64);
        let (runs, length) = (4_000_u32, 65_536_usize);
        let (mut sum, mut squares) = (0.0, 0.0);
        for _ in 0..runs {
            skips.select(length, &mut stream, &mut selected);
            let deviation = selected.len() as f64 - length as f64 * rate;
            sum += deviation;
            squares += deviation * deviation;
        }
        let variance = length as f64 * rate * (1.0 - rate);
        let runs = f64::from(runs);
        assert!((sum / (variance * runs).sqrt()).abs() < 5.2, "rate {rate}");
        let kurtosis = 2.0 + 1.0 / variance;
        assert!(
            ((squares / variance - runs) / (runs * kurtosis).sqrt()).abs() < 5.2,
            "rate {rate}"
        );
    }
    Ok(())
}
