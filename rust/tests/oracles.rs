//! Laws of the reports of every oracle at alpha = 1e-6, and that every way to a tally is the same.

use rayon::ThreadPoolBuilder;
use turnout_core::Error;
use turnout_core::frequency::{
    BitStage, CHUNK, CountMeanSketch, DirectEncoding, FrequencyOracle, HadamardCountMeanSketch,
    HadamardResponse, LocalHashing, Memoized, MemoizedDirect, MemoizedUnary, NodeProbabilities,
    PooledLocalHashing, ProjectiveGeometryResponse, Selection, SubsetSelection, SummationHistogram,
    Tally, UnaryEncoding,
};
use turnout_core::parameters::{DomainSize, Epsilon, Probability};
use turnout_core::random::AesStreams;

const ALL: f64 = 18_446_744_073_709_551_616.0;

type Checked = Result<(), Error>;

fn epsilon(value: f64) -> Result<Epsilon, Error> {
    Epsilon::new(value)
}

fn domain(size: u64) -> Result<DomainSize, Error> {
    DomainSize::new(size)
}

/// Chi-square against its quantile at alpha = 1e-6 (Wilson-Hilferty, z = 4.75).
fn check_law(name: &str, observed: &[u64], masses: &[f64]) {
    let draws = observed.iter().sum::<u64>() as f64;
    let sum: f64 = masses.iter().sum();
    assert!((sum - 1.0).abs() < 1e-9, "{name}: the masses add up to {sum}");
    let (mut statistic, mut freedom) = (0.0, -1.0);
    for (&observed, &mass) in observed.iter().zip(masses) {
        let expected = mass * draws;
        if mass == 0.0 {
            assert_eq!(observed, 0, "{name}: a report that cannot be");
            continue;
        }
        assert!(expected > 5.0, "{name}: too few reports to tell");
        statistic += (observed as f64 - expected).powi(2) / expected;
        freedom += 1.0;
    }
    let nine = 2.0 / (9.0 * freedom);
    let quantile = freedom * (1.0 - nine + 4.75 * f64::sqrt(nine)).powi(3);
    assert!(
        statistic < quantile,
        "{name}: {statistic} of {quantile}, {freedom} degrees of freedom"
    );
}

/// Makes reports of `code` and sorts them into cells.
fn sorted<O: FrequencyOracle>(
    oracle: &O,
    code: u8,
    cells: usize,
    cell: impl Fn(&[O::Item]) -> usize,
) -> Result<Vec<u64>, Error> {
    let nodes = 400_000;
    let streams = AesStreams::from_seed(u64::from(code) + 17);
    let reports = oracle.randomize(&vec![code; nodes], &Selection::everyone(), &streams)?.codes;
    oracle.check(&reports)?;
    let mut observed = vec![0; cells];
    for report in reports.chunks_exact(oracle.width()) {
        observed[cell(report)] += 1;
    }
    Ok(observed)
}

/// For oracles whose reports can be listed: `mass` gives that of a report from whether it supports
/// the code.
fn listed<O: FrequencyOracle>(
    name: &str,
    oracle: &O,
    reports: &[Vec<O::Item>],
    mass: impl Fn(&[O::Item], bool) -> f64,
) -> Checked
where
    O::Item: PartialEq,
{
    for code in 0..u8::try_from(oracle.domain().get()).unwrap_or(u8::MAX) {
        let mut masses = Vec::new();
        for report in reports {
            let supported = oracle.supports(report)?[0] >> code & 1 == 1;
            masses.push(mass(report, supported));
        }
        let observed = sorted(oracle, code, reports.len(), |report| {
            reports.iter().position(|listed| listed == report).unwrap_or(usize::MAX)
        })?;
        check_law(&format!("{name}, code {code}"), &observed, &masses);
    }
    Ok(())
}

fn share(words: u64) -> f64 {
    words as f64 / ALL
}

#[test]
fn reports_of_one_number_have_their_law() -> Checked {
    let (eps, size) = (epsilon(1.2)?, domain(5)?);

    let oracle = HadamardResponse::<u8>::new(eps, size)?;
    let reports: Vec<Vec<u8>> = (0..8).map(|report| vec![report]).collect();
    // Code `x` is supported by an even number of bits in common with `x + 1`.
    for (code, report) in (0..5_u8).flat_map(|code| (0..8_u8).map(move |report| (code, report))) {
        let even = (report & (code + 1)).count_ones() % 2 == 0;
        assert_eq!(oracle.supports(&[report])?[0] >> code & 1 == 1, even);
    }
    let (own, other) = oracle.words();
    let half = (own + other) as f64 * 4.0;
    let mass = |supported| if supported { own as f64 / half } else { other as f64 / half };
    listed("Hadamard response", &oracle, &reports, |_, supported| mass(supported))?;

    for field in [2, 3, 5] {
        let oracle = ProjectiveGeometryResponse::<u8>::new(eps, size, Some(field))?;
        let points = oracle.points();
        let reports: Vec<Vec<u8>> =
            (0..u8::try_from(points).unwrap_or(0)).map(|report| vec![report]).collect();
        let (own, other) = oracle.words();
        let inside = oracle.hyperplane_points() as f64;
        let total = inside * own as f64 + (points as f64 - inside) * other as f64;
        let mass = |supported| if supported { own as f64 / total } else { other as f64 / total };
        listed("projective geometry", &oracle, &reports, |_, supported| mass(supported))?;
        // Any two hyperplanes meet in equally many points, which the estimates stand on.
        let rows = oracle.supports(&reports.concat())?;
        for (one, two) in (0..5).flat_map(|one| (0..one).map(move |two| (one, two))) {
            let both = rows.iter().filter(|&row| row >> one & row >> two & 1 == 1).count();
            assert_eq!(both as u64, oracle.common_points());
        }
    }
    Ok(())
}

#[test]
fn reports_of_bits_have_their_law() -> Checked {
    let (eps, size) = (epsilon(1.2)?, domain(5)?);
    let rows: Vec<Vec<u64>> = (0..32).map(|row| vec![row]).collect();
    for (name, oracle) in [
        ("symmetric", UnaryEncoding::symmetric(eps, size)?),
        ("optimized", UnaryEncoding::optimized(eps, size)?),
        ("threshold", UnaryEncoding::threshold_histogram(eps, size)?),
    ] {
        let (p, q) = (share(oracle.words().0), share(oracle.words().1));
        listed(name, &oracle, &rows, |row, own| {
            let others = (row[0].count_ones() - u32::from(own)).cast_signed();
            (if own { p } else { 1.0 - p }) * q.powi(others) * (1.0 - q).powi(4 - others)
        })?;
    }
    for chosen in 1..=4_u32 {
        let oracle = SubsetSelection::new(eps, size, Some(chosen.into()))?;
        let sets: Vec<Vec<u64>> =
            rows.iter().filter(|row| row[0].count_ones() == chosen).cloned().collect();
        assert_eq!(sets.len(), [5, 10, 10, 5][chosen as usize - 1]);
        let p = share(oracle.own_words());
        let (with, without) = ([1.0, 4.0, 6.0, 4.0], [4.0, 6.0, 4.0, 1.0]);
        let index = chosen as usize - 1;
        listed("subset selection", &oracle, &sets, |_, own| {
            if own { p / with[index] } else { (1.0 - p) / without[index] }
        })?;
    }
    // A permanent answer and a report of it, both drawn anew.
    let stages = [BitStage::Symmetric, BitStage::Optimized];
    let oracle = MemoizedUnary::new(size, epsilon(3.0)?, eps, stages)?;
    let [(one, zero), (kept, raised)] = oracle.words();
    let through = |ones: u64| share(ones) * share(kept) + (1.0 - share(ones)) * share(raised);
    let (p, q) = (through(one), through(zero));
    listed("memoized", &oracle, &rows, |row, own| {
        let others = (row[0].count_ones() - u32::from(own)).cast_signed();
        (if own { p } else { 1.0 - p }) * q.powi(others) * (1.0 - q).powi(4 - others)
    })
}

#[test]
fn direct_encoding_of_a_permanent_answer_has_its_law() -> Checked {
    let oracle = MemoizedDirect::new(domain(4)?, epsilon(2.5)?, epsilon(1.0)?)?;
    let [(own, other), (kept, changed)] = oracle.words();
    let stage = |own: u64, other: u64| {
        let total = own as f64 + 3.0 * other as f64;
        (own as f64 / total, other as f64 / total)
    };
    let ((p, q), (stays, moves)) = (stage(own, other), stage(kept, changed));
    let reports: Vec<Vec<u32>> = (0..4).map(|report| vec![report]).collect();
    listed("memoized direct", &oracle, &reports, |_, own| {
        if own { p * stays + 3.0 * q * moves } else { p * moves + q * stays + 2.0 * q * moves }
    })
}

#[test]
fn reports_of_shared_functions_have_their_law() -> Checked {
    let (eps, size) = (epsilon(1.2)?, domain(6)?);

    let oracle = PooledLocalHashing::new(eps, size, 4, 3, 9)?;
    let reports: Vec<Vec<u32>> = (0..12).map(|report| vec![report]).collect();
    let (own, other) = oracle.words();
    let total = 3.0 * (own as f64 + 3.0 * other as f64);
    let mass = |supported| if supported { own as f64 / total } else { other as f64 / total };
    listed("pooled local hashing", &oracle, &reports, |_, supported| mass(supported))?;

    let oracle = HadamardCountMeanSketch::new(eps, size, 2, 4, 9)?;
    let reports: Vec<Vec<u32>> = (0..16).map(|report| vec![report]).collect();
    let (own, other) = oracle.words();
    let total = 8.0 * (own as f64 + other as f64);
    let mass = |supported| if supported { own as f64 / total } else { other as f64 / total };
    listed("Hadamard count-mean sketch", &oracle, &reports, |_, supported| mass(supported))?;

    let oracle = CountMeanSketch::new(eps, size, 2, 3, 9)?;
    let reports: Vec<Vec<u64>> = (0..16).map(|report| vec![report / 8, report % 8]).collect();
    let flip = share(oracle.flip_words());
    listed("count-mean sketch", &oracle, &reports, |report, own| {
        // The own bit is kept or flipped, and so is each of the two others, which were zero.
        let others = (report[1].count_ones() - u32::from(own)).cast_signed();
        let own = if own { 1.0 - flip } else { flip };
        0.5 * own * flip.powi(others) * (1.0 - flip).powi(2 - others)
    })
}

#[test]
fn local_hashing_draws_uniform_functions_and_randomizes_the_bucket() -> Checked {
    let size = domain(6)?;
    for buckets in [2_u64, 3, 5] {
        let oracle = LocalHashing::new(epsilon(1.2)?, size, buckets)?;
        let bucket_bits = (buckets - 1).ilog2() + 1;
        let bits = (oracle.report_bits() - bucket_bits) / 2;
        let (own, other) = oracle.words();
        let total = own as f64 + (buckets - 1) as f64 * other as f64;
        let prime = oracle.modulus();
        // Cells: a quarter of the first coefficient, a third of the second, and how far the bucket
        // is from the own one.
        let share_of = |parts: u64, part: u64| {
            ((part + 1) * prime).div_ceil(parts) as f64 - (part * prime).div_ceil(parts) as f64
        };
        let masses: Vec<f64> = (0..12 * buckets)
            .map(|cell| {
                let (a, b) = (cell / (3 * buckets), cell / buckets % 3);
                let weight = if cell % buckets == 0 { own } else { other } as f64 / total;
                share_of(4, a) * share_of(3, b) / (prime as f64).powi(2) * weight
            })
            .collect();
        for code in [0_u8, 1, 5] {
            let cells = masses.len();
            let observed = sorted(&oracle, code, cells, |report| {
                let (rest, bucket) = (report[0] >> bucket_bits, report[0] % (1 << bucket_bits));
                let (a, b) = (rest >> bits, rest % (1 << bits));
                let hashed = (a * u64::from(code) + b) % prime * buckets / prime;
                let cell = (a * 4 / prime) * 3 + b * 3 / prime;
                usize::try_from(cell * buckets + (bucket + buckets - hashed) % buckets)
                    .unwrap_or(usize::MAX)
            })?;
            check_law(&format!("{buckets} buckets, code {code}"), &observed, &masses);
        }
    }
    Ok(())
}

#[test]
fn noisy_histograms_have_independent_discrete_laplace_scores() -> Checked {
    let oracle = SummationHistogram::new(epsilon(1.2)?, domain(3)?)?;
    let (reach, decay) = (2_i64, (-(oracle.rate() as f64) / ALL).exp());
    // Of the score less its mean, with the tails at the ends.
    let score = |noise: i64, mean: i64| {
        let mass = |x: i64| {
            let away = i32::try_from((x - mean).abs()).unwrap_or(i32::MAX);
            (1.0 - decay) / (1.0 + decay) * decay.powi(away)
        };
        let inside = (-60..=60).filter(|x| x.clamp(&-reach, &reach) == &noise);
        inside.map(mass).sum::<f64>()
    };
    let side = 2 * reach + 1;
    let masses: Vec<f64> = (0..side.pow(3))
        .map(|cell| {
            let noise = |place: i64| cell / side.pow(u32::try_from(place).unwrap_or(0)) % side;
            score(noise(0) - reach, 0) * score(noise(1) - reach, 1) * score(noise(2) - reach, 0)
        })
        .collect();
    let observed = sorted(&oracle, 1, masses.len(), |scores| {
        let place = |score: i32| i64::from(score).clamp(-reach, reach) + reach;
        let cell = place(scores[0]) + side * (place(scores[1]) + side * place(scores[2]));
        usize::try_from(cell).unwrap_or(usize::MAX)
    })?;
    check_law("summation", &observed, &masses);
    Ok(())
}

/// Every way to a tally, for every kind of participation, on one thread and on three.
fn agrees<O: FrequencyOracle>(
    name: &str,
    oracle: &O,
    simulate: impl Fn(&[u64], Probability, &AesStreams) -> Result<Tally, Error> + Sync,
) -> Checked
where
    O::Item: PartialEq + core::fmt::Debug,
{
    let size = oracle.domain().get();
    let nodes = 2 * CHUNK as u64 + 1234;
    let codes: Vec<u16> = (0..nodes)
        .map(|node| u16::try_from(node * node % 1009 % size).unwrap_or(u16::MAX))
        .collect();
    let personal: Vec<f64> =
        codes.iter().map(|&code| 0.05 + 0.9 * f64::from(code) / size as f64).collect();
    let streams = AesStreams::from_seed(5);
    let rate = Probability::new(0.3)?;
    let mut selections = vec![
        Selection::bernoulli(rate),
        Selection::bernoulli(Probability::new(1e-4)?),
        Selection::personalized(NodeProbabilities::new(&personal)?),
    ];
    // Rows of many integers take long to draw.
    if oracle.width() < 10 {
        selections.push(Selection::everyone());
    }
    let run = || -> Result<_, Error> {
        let mut tallies = vec![simulate(&vec![1_000_000; oracle.domain().len()], rate, &streams)?];
        let mut made = Vec::new();
        for selection in &selections {
            let reports = oracle.randomize(&codes, selection, &streams)?;
            let rates = reports.probabilities.as_deref().map(NodeProbabilities::new).transpose()?;
            let tally = oracle.tally(&reports.codes, rates)?;
            assert_eq!(oracle.collect(&codes, selection, &streams)?, tally, "{name}");
            assert_eq!(tally.received * oracle.width() as u64, reports.codes.len() as u64);
            tallies.push(tally);
            made.push(reports);
        }
        Ok((tallies, made))
    };
    let mut results = Vec::new();
    for threads in [1, 3] {
        if let Ok(pool) = ThreadPoolBuilder::new().num_threads(threads).build() {
            results.push(pool.install(run)?);
        }
    }
    assert!(results.len() == 2 && results[0] == results[1], "{name} depends on the threads");
    // Reports one by one: the codes that they support add up to the tally.
    let (tallies, made) = &results[0];
    let [_, _, tally, ..] = tallies.as_slice() else { return Ok(()) };
    let mut sums = vec![0_i64; oracle.domain().len()];
    for report in made[1].codes.chunks_exact(oracle.width()) {
        oracle.scores(report, &mut |code, score| sums[code] += score);
    }
    let support: Vec<i64> = tally.support.iter().map(|count| count.cast_signed()).collect();
    assert_eq!(support, sums, "{name}");
    Ok(())
}

#[test]
fn collect_is_the_tally_of_randomize_for_every_oracle_on_any_number_of_threads() -> Checked {
    let eps = epsilon(1.5)?;
    for size in [domain(37)?, domain(130)?] {
        let oracle = HadamardResponse::<u16>::new(eps, size)?;
        agrees("Hadamard response", &oracle, |c, r, s| oracle.simulate(c, r, s))?;
        let oracle = ProjectiveGeometryResponse::<u16>::new(eps, size, None)?;
        agrees("projective geometry", &oracle, |c, r, s| oracle.simulate(c, r, s))?;
        for oracle in [
            UnaryEncoding::symmetric(eps, size)?,
            UnaryEncoding::optimized(eps, size)?,
            UnaryEncoding::threshold_histogram(eps, size)?,
        ] {
            agrees("unary encoding", &oracle, |c, r, s| oracle.simulate(c, r, s))?;
        }
        let oracle = SubsetSelection::new(eps, size, None)?;
        agrees("subset selection", &oracle, |c, r, s| oracle.simulate(c, r, s))?;
        for oracle in [LocalHashing::optimized(eps, size)?, LocalHashing::binary(eps, size)?] {
            agrees("local hashing", &oracle, |c, r, s| oracle.simulate(c, r, s))?;
        }
        let oracle = PooledLocalHashing::optimized(eps, size, 50, 3)?;
        agrees("pooled local hashing", &oracle, |c, r, s| oracle.simulate(c, r, s))?;
        let oracle = CountMeanSketch::new(eps, size, 20, 100, 3)?;
        agrees("count-mean sketch", &oracle, |c, r, s| oracle.simulate(c, r, s))?;
        let oracle = HadamardCountMeanSketch::new(eps, size, 20, 64, 3)?;
        agrees("Hadamard count-mean sketch", &oracle, |c, r, s| oracle.simulate(c, r, s))?;
        let oracle = MemoizedDirect::new(size, epsilon(4.0)?, eps)?;
        agrees("memoized direct encoding", &oracle, |c, r, s| oracle.simulate(c, r, s))?;
        let stages = [BitStage::Optimized, BitStage::Symmetric];
        let oracle = MemoizedUnary::new(size, epsilon(4.0)?, eps, stages)?;
        agrees("memoized unary encoding", &oracle, |c, r, s| oracle.simulate(c, r, s))?;
    }
    let oracle = SummationHistogram::new(eps, domain(11)?)?;
    agrees("summation", &oracle, |c, r, s| oracle.simulate(c, r, s))
}

#[test]
fn two_buckets_of_local_hashing_keep_the_bucket_as_direct_encoding_does() -> Checked {
    let oracle = LocalHashing::binary(epsilon(2.0)?, domain(9)?)?;
    assert_eq!(oracle.words(), DirectEncoding::new(epsilon(2.0)?, domain(2)?)?.words());
    Ok(())
}
