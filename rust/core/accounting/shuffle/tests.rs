//! Tests of the shuffled reports.

use super::*;

fn law(own: f64, other: f64, neither: f64, common: f64, blanket: f64) -> ShuffleLaw {
    ShuffleLaw { own, other, gap: own - other, neither, common, blanket }
}

/// The probabilities of the own and of any other answer.
fn direct_encoding(epsilon: f64, answers: f64) -> (f64, f64) {
    let total = epsilon.exp() + answers - 1.0;
    (epsilon.exp() / total, 1.0 / total)
}

/// The divergence of the histograms of m blanket reports and the node's own, term by term.
fn by_double_sum(m: u64, law: &ShuffleLaw, epsilon: f64) -> f64 {
    let share = (2.0 * law.common / law.blanket).min(1.0);
    let count = |a: i64, b: i64| -> f64 {
        let (Ok(a), Ok(b)) = (u64::try_from(a), u64::try_from(b)) else { return 0.0 };
        if a + b > m {
            return 0.0;
        }
        probability(m, share, a + b) * probability(a + b, 0.5, a)
    };
    let last = i64::try_from(m).unwrap_or(0) + 1;
    let mut total = 0.0;
    for a in 0..=last {
        for b in 0..=last - a {
            let (first, second, rest) = (count(a - 1, b), count(a, b - 1), count(a, b));
            let p = law.own * first + law.other * second + law.neither * rest;
            let q = law.other * first + law.own * second + law.neither * rest;
            total += (p - epsilon.exp() * q).max(0.0);
        }
    }
    total
}

#[test]
fn the_closed_form_is_the_double_sum() -> Result<()> {
    for nodes in [1, 2, 3, 10, 60] {
        for (local, answers) in [(0.5, 2.0), (1.0, 3.0), (2.0, 10.0), (5.0, 4.0)] {
            for rate in [1.0, 0.3] {
                let (own, other) = direct_encoding(local, answers);
                let (own, other) = (own * rate, other * rate);
                let neither = (1.0 - own - other).max(0.0);
                let blanket = answers * other + 1.0 - rate;
                for law in [
                    law(own, other, neither, other, blanket),
                    law(own, other, 0.0, other, 2.0 * other),
                    law(own, other, neither, other, 1.0),
                ] {
                    let shuffle = Shuffle::new(nodes, law)?;
                    for epsilon in [0.0, 0.01, 0.1, 0.5, 1.0, 1.9] {
                        let bound = shuffle.replace(epsilon).delta;
                        let exact: f64 = (0..nodes)
                            .map(|m| {
                                probability(nodes - 1, law.blanket, m)
                                    * by_double_sum(m, &law, epsilon)
                            })
                            .sum();
                        let label = format!("{nodes} {law:?} {epsilon}: {bound} {exact}");
                        assert!(bound >= exact * (1.0 - 1e-11) - 1e-15, "{label}");
                        assert!(bound <= exact * (1.0 + 1e-8) + 3e-12, "{label}");
                    }
                    assert!(shuffle.replace(local + 1e-9).delta == 0.0);
                }
            }
        }
    }
    Ok(())
}

#[test]
fn data_that_exceed_the_variation_ratio_reduction_are_covered() -> Result<()> {
    // Two nodes, three answers, the other node holds the first one: the six histograms.
    let (own, other) = direct_encoding(0.5, 3.0);
    let reduction = Shuffle::new(2, law(own, other, other, other, 1.0))?;
    let sound = Shuffle::new(2, law(own, other, other, other, 3.0 * other))?;
    let [zero, one] = [[own, other, other], [other, own, other]];
    let pair = |first: &[f64; 3], i: usize, j: usize| {
        if i == j { first[i] * zero[i] } else { first[i] * zero[j] + first[j] * zero[i] }
    };
    for epsilon in [0.3_f64, 0.4, 0.45] {
        let mut real = 0.0;
        for i in 0..3 {
            for j in i..3 {
                real += (pair(&zero, i, j) - epsilon.exp() * pair(&one, i, j)).max(0.0);
            }
        }
        assert!(reduction.replace(epsilon).delta < real);
        assert!(sound.replace(epsilon).delta >= real);
    }
    Ok(())
}

#[test]
fn delta_falls_with_epsilon_and_with_the_number_of_nodes() -> Result<()> {
    let (own, other) = direct_encoding(1.5, 5.0);
    let mut last = f64::INFINITY;
    for nodes in [1, 10, 1000, 100_000, 10_000_000] {
        let shuffle = Shuffle::new(nodes, law(own, other, 3.0 * other, other, 5.0 * other))?;
        let at = |epsilon: f64| shuffle.replace(epsilon).delta;
        assert!(at(0.0) < last && at(1e-3) < at(0.0) && at(2e-3) <= at(1e-3), "{nodes}");
        last = at(0.0);
    }
    Ok(())
}

#[test]
fn no_mass_is_lost_where_blocks_begin_outside_of_the_range_of_numbers() -> Result<()> {
    // Nearly everything is blanket: its number varies by far less than a block.
    for (nodes, own) in [(10_000, 0.5001), (100_000, 0.500_001), (3000, 0.9)] {
        let other = 1.0 - own;
        for (neither, blanket) in [(0.0, 2.0 * other), (1e-19, 2.0 * other + 1e-19)] {
            let law = ShuffleLaw { neither, ..law(own, other, 0.0, other, blanket) };
            let at_zero = Shuffle::new(nodes, law)?.replace(0.0).delta;
            // The total variation distance of A + 1 and A, in the mean over C.
            let others = nodes - 1;
            let exact: f64 = (0..nodes)
                .map(|c| {
                    let middle = log_probability(c, 0.5, c / 2).exp();
                    probability(others, 2.0 * other, c) * middle * (own - other)
                })
                .sum();
            assert!((at_zero / exact - 1.0).abs() < 1e-6, "{nodes} {own}: {at_zero} {exact}");
        }
    }
    Ok(())
}

#[test]
fn blocks_of_blankets_lose_little() -> Result<()> {
    let (own, other) = direct_encoding(1.0, 10.0);
    let law = law(own, other, 8.0 * other, other, 10.0 * other);
    let shuffle = Shuffle::new(20_000, law)?;
    for epsilon in [0.0, 0.01, 0.02] {
        let bound = shuffle.replace(epsilon).delta;
        let share = law.common * 2.0 / law.blanket;
        let exact: f64 = (15_500..18_700)
            .map(|m| {
                let part = shuffle.given(epsilon, m, share).bound;
                probability(19_999, law.blanket, m) * part
            })
            .sum();
        assert!(bound >= exact * (1.0 - 1e-12) && bound <= exact * 1.002, "{bound} {exact}");
    }
    Ok(())
}

#[test]
fn blocks_and_recurrences_agree_with_exact_starts() {
    let mut tails = Tails::new(1000, 530);
    for c in 1001..3000_u64 {
        let k = c / 2 + 30 + c % 7;
        tails.advance(k);
        let fresh = Tails::new(c, k);
        assert!((tails.tail / fresh.tail - 1.0).abs() < 1e-11, "{c}");
        assert!((tails.point / fresh.point - 1.0).abs() < 1e-11, "{c}");
    }
}

#[test]
fn impossible_parameters_are_refused() {
    let good = law(0.5, 0.2, 0.3, 0.2, 0.6);
    assert!(Shuffle::new(10, good).is_ok());
    assert!(Shuffle::new(0, good).is_err());
    for law in [
        ShuffleLaw { own: 0.9, ..good },
        ShuffleLaw { gap: 0.0, ..good },
        ShuffleLaw { gap: f64::NAN, ..good },
        ShuffleLaw { other: -0.2, ..good },
        ShuffleLaw { common: 0.4, ..good },
        ShuffleLaw { blanket: 1.1, ..good },
        ShuffleLaw { neither: 0.5, ..good },
    ] {
        assert!(Shuffle::new(10, law).is_err(), "{law:?}");
    }
}
