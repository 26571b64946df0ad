//! One pass over the rows: it squares a few of them at a time, and adds them up while they are in
//! the cache.

use core::ops::Range;

use super::kernel::{GROUP, Instructions, Number, Scale, Strip, WIDTH, add_integers};
use super::rule::Rule;
use super::{Gradients, Part, power};
use crate::parallel::{self, chunk};
use crate::{Error, Result};

/// Up to so many numbers are added up on the calling thread.
const FEW: usize = 1 << 15;

/// Rows with so many parameters are cut among threads; shorter ones are dealt out.
const WIDE: usize = 1 << 15;

/// Most groups of rows that are dealt out, and the fewest numbers in one.
const SPANS: usize = 64;
const SPAN: usize = 1 << 19;

/// Bytes that are squared and then added up, for a thread that works alone and for all together.
const ALONE: usize = 1 << 18;
const TOGETHER: usize = 1 << 20;

/// Pieces that columns are cut into for each thread.
const PIECES: usize = 2;

/// How rows are added up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Sums {
    /// As they are.
    Real,
    /// Rounded toward zero, in doubles that are exact for so many rows.
    Whole(usize),
    /// Rounded toward zero, in integers of 32 bits with room for so many rows. Products are in
    /// single precision, for which the [`Rule`] has a wider margin.
    Narrow(usize),
    /// Rounded toward zero, in integers.
    Integers,
}

impl Sums {
    /// For integers of at most this size, of gradients that are all in single precision or not.
    pub(super) fn whole(largest: f64, single: bool) -> Self {
        // The integers of a row exceed no clip: their sum is below 2^31, or below 2^53.
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "from 0 to 2^52"
        )]
        let rows = |limit: f64| (limit / largest.max(1.0).ceil()) as usize;
        match (rows(power(31) - 1.0), rows(power(52))) {
            (most, _) if single && most >= 16 => Self::Narrow(most),
            (_, most) if most >= 256 => Self::Whole(most),
            _ => Self::Integers,
        }
    }
}

/// The sums of all columns: as doubles if they are real, as integers if not.
#[derive(Debug, Default)]
pub(super) struct Totals {
    pub(super) reals: Vec<f64>,
    pub(super) integers: Vec<i64>,
}

impl Totals {
    fn add(&mut self, other: &Self) {
        self.reals.iter_mut().zip(&other.reals).for_each(|(sum, value)| *sum += value);
        self.integers.iter_mut().zip(&other.integers).for_each(|(sum, value)| *sum += value);
    }
}

impl Gradients<'_> {
    /// Tells whether they are so few that the calling thread adds them up.
    #[must_use]
    pub fn are_few(&self) -> bool {
        self.examples.saturating_mul(self.parameters()) <= FEW
    }
}

/// Adds up all rows.
pub(super) fn pass(gradients: &Gradients<'_>, rule: &Rule, sums: Sums) -> Result<Totals> {
    let (examples, parameters) = (gradients.examples, gradients.parameters());
    let few = gradients.are_few();
    let rows = examples.div_ceil(SPANS).max(SPAN.div_ceil(parameters.max(1)));
    if few || parameters >= WIDE || rows >= examples {
        return accumulate(gradients, 0..examples, rule, sums, !few && parameters > WIDTH);
    }
    let spans = parallel::map(examples.div_ceil(rows), |span| {
        accumulate(gradients, chunk(span, rows, examples), rule, sums, false)
    });
    let mut spans = spans.into_iter();
    let mut total = spans.next().unwrap_or_else(|| Ok(Totals::default()))?;
    for span in spans {
        total.add(&span?);
    }
    Ok(total)
}

/// Adds up some rows.
fn accumulate(
    gradients: &Gradients<'_>,
    rows: Range<usize>,
    rule: &Rule,
    sums: Sums,
    together: bool,
) -> Result<Totals> {
    let parameters = gradients.parameters();
    let room = |wanted: bool| if wanted { parameters } else { 0 };
    let mut totals = Totals {
        reals: vec![0.0; room(matches!(sums, Sums::Real | Sums::Whole(_)))],
        integers: vec![0; room(sums != Sums::Real)],
    };
    let mut narrow = vec![0; room(matches!(sums, Sums::Narrow(_)))];
    let mut columns = columns(gradients, &mut totals, &mut narrow);
    let bytes = if together { TOGETHER } else { ALONE };
    let most = match sums {
        Sums::Whole(rows) | Sums::Narrow(rows) => rows,
        Sums::Real | Sums::Integers => usize::MAX,
    };
    let batch = (bytes / gradients.row_bytes().max(1))
        .next_multiple_of(GROUP)
        .clamp(GROUP, most.max(GROUP));
    let instructions = Instructions::best();
    let mut scales = Vec::new();
    let (mut done, mut squared) = (rows.start, rows.start);
    while done < rows.end {
        let next = squared..(squared + batch).min(rows.end);
        // One after the other: what is read from memory is read in the order in which it lies there.
        each(&mut columns, together, |columns| {
            for strip in &mut *columns {
                strip.add(instructions, done, &scales, sums);
            }
            for strip in columns {
                strip.square(instructions, next.clone());
            }
        });
        done = squared;
        squared = next.end;
        scales.clear();
        for (row, example) in next.enumerate() {
            let squares = columns.iter().fold(0.0, |sum, columns| sum + columns.squares[row]);
            let scale = rule.scale(squares, || gradients.row(example));
            scales.push(scale.ok_or(Error::NotFinite { argument: "gradients", example })?);
        }
    }
    each(&mut columns, together, |columns| columns.iter_mut().for_each(Columns::carry));
    Ok(totals)
}

/// Some columns of a part, and what is known of them.
struct Columns<'a, 'b> {
    part: Part<'a>,
    parameters: usize,
    first: usize,
    width: usize,
    /// The sums of the squares of rows.
    squares: Vec<f64>,
    reals: &'b mut [f64],
    narrow: &'b mut [i32],
    integers: &'b mut [i64],
    /// Rows in the doubles, or the narrow integers, that are not yet in the integers.
    pending: usize,
}

/// All columns, in the order of the parts.
fn columns<'a, 'b>(
    gradients: &Gradients<'a>,
    totals: &'b mut Totals,
    mut narrow: &'b mut [i32],
) -> Vec<Columns<'a, 'b>> {
    let (mut reals, mut integers) = (&mut totals.reals[..], &mut totals.integers[..]);
    let mut all = Vec::with_capacity(gradients.strips());
    for &(parameters, part) in &gradients.parts {
        for first in (0..parameters).step_by(WIDTH) {
            let width = WIDTH.min(parameters - first);
            let (own_reals, own_narrow, own_integers);
            (own_reals, reals) = reals.split_at_mut(width.min(reals.len()));
            (own_narrow, narrow) = narrow.split_at_mut(width.min(narrow.len()));
            (own_integers, integers) = integers.split_at_mut(width.min(integers.len()));
            all.push(Columns {
                part,
                parameters,
                first,
                width,
                squares: Vec::new(),
                reals: own_reals,
                narrow: own_narrow,
                integers: own_integers,
                pending: 0,
            });
        }
    }
    all
}

/// Does something with all columns: with neighbours on one thread, if there are several.
fn each<'a, 'b>(
    columns: &mut [Columns<'a, 'b>],
    together: bool,
    job: impl Fn(&mut [Columns<'a, 'b>]) + Sync,
) {
    if together {
        let length = columns.len().div_ceil(PIECES * parallel::threads()).max(1);
        parallel::for_each_chunk(columns, length, |_, columns| job(columns));
    } else {
        job(columns);
    }
}

impl<'a> Columns<'a, '_> {
    /// These columns of the rows from one on.
    fn strip<T>(&self, values: &'a [T], row: usize) -> Strip<'a, T> {
        let values = &values[row * self.parameters + self.first..];
        Strip { values, stride: self.parameters, width: self.width }
    }

    /// Squares some rows.
    fn square(&mut self, instructions: Instructions, rows: Range<usize>) {
        self.squares.resize(rows.len(), 0.0);
        if rows.is_empty() {
            return;
        }
        match self.part {
            Part::Single(values) => {
                instructions.squares(self.strip(values, rows.start), &mut self.squares);
            }
            Part::Double(values) => {
                instructions.squares(self.strip(values, rows.start), &mut self.squares);
            }
        }
    }

    /// Adds up the rows from one on.
    fn add(&mut self, instructions: Instructions, first: usize, scales: &[Scale], sums: Sums) {
        if scales.is_empty() {
            return;
        }
        if let Sums::Whole(most) | Sums::Narrow(most) = sums {
            if self.pending + scales.len() > most {
                self.carry();
            }
            self.pending += scales.len();
        }
        match (self.part, sums) {
            (Part::Single(values), Sums::Narrow(_)) => {
                instructions.add_narrow(self.strip(values, first), scales, self.narrow);
            }
            (Part::Single(values), _) => {
                self.add_strip(instructions, self.strip(values, first), scales, sums);
            }
            (Part::Double(values), _) => {
                self.add_strip(instructions, self.strip(values, first), scales, sums);
            }
        }
    }

    fn add_strip<T: Number>(
        &mut self,
        instructions: Instructions,
        strip: Strip<'_, T>,
        scales: &[Scale],
        sums: Sums,
    ) {
        match sums {
            Sums::Real => instructions.add(strip, scales, self.reals),
            Sums::Whole(_) => instructions.add_whole(strip, scales, self.reals),
            Sums::Narrow(_) | Sums::Integers => add_integers(strip, scales, self.integers),
        }
    }

    /// Moves whole numbers from the doubles, or the narrow integers, to the integers.
    fn carry(&mut self) {
        for (integer, real) in self.integers.iter_mut().zip(self.reals.iter_mut()) {
            #[expect(clippy::cast_possible_truncation, reason = "an integer below 2^53")]
            let whole = *real as i64;
            *integer += whole;
            *real = 0.0;
        }
        for (integer, narrow) in self.integers.iter_mut().zip(self.narrow.iter_mut()) {
            *integer += i64::from(*narrow);
            *narrow = 0;
        }
        self.pending = 0;
    }
}
