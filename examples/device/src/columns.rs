//! Several questions at once: an answer is a line of JSON, an object with an answer to each question by
//! its name, or a list of them in the order of the plan.

use serde_json::value::RawValue;
use turnout_core::frequency::Selection;

use crate::Refusal;
use crate::labels::Labels;
use crate::members::Members;
use crate::noise::Noise;
use crate::oracles::{Nodes, Randomizer};
use crate::question::{Answers, Description, Question};
use crate::reports::Report;

/// The most combinations of answers, and the most cells of all tables of two.
const MOST_CELLS: u64 = 1 << 20;

/// One of several questions.
#[derive(Debug)]
struct Asked {
    name: String,
    /// Its domain as it stands in the plan.
    domain: String,
    labels: Labels,
}

/// Several questions.
#[derive(Debug)]
pub(crate) struct Columns(Vec<Asked>);

impl Columns {
    /// Reads the questions: at least two, with different names.
    pub(crate) fn read(domain: &RawValue) -> Result<Self, Refusal> {
        let mut members = Members::read(domain)?;
        let columns: Vec<Members<'_>> = members.take("columns")?;
        members.finish()?;
        let mut found: Vec<Asked> = Vec::new();
        for mut column in columns {
            let name: String = column.take("name")?;
            let domain: &RawValue = column.take("domain")?;
            column.finish()?;
            let labels = Labels::read(domain)?;
            if labels.size() < 2 || found.iter().any(|other| other.name == name) {
                return Err("a question has one answer, or the name of another".to_owned());
            }
            found.push(Asked { name, domain: domain.get().to_owned(), labels });
        }
        if found.len() < 2 {
            return Err("a domain of columns has at least two questions".to_owned());
        }
        Ok(Self(found))
    }

    /// How many answers each question has.
    pub(crate) fn sizes(&self) -> Vec<u64> {
        self.0.iter().map(|asked| asked.labels.size()).collect()
    }

    /// Whether the domain of a question stands in the plan like that.
    pub(crate) fn has(&self, question: usize, domain: &RawValue) -> bool {
        self.0.get(question).is_some_and(|asked| asked.domain == domain.get())
    }

    /// The pairs of questions, as places; refuses what Python does not ask.
    pub(crate) fn pairs(&self) -> Result<Vec<(usize, usize)>, Refusal> {
        let places = 0..self.0.len();
        let pairs: Vec<_> = places
            .clone()
            .flat_map(|one| (one + 1..places.end).map(move |other| (one, other)))
            .collect();
        let name = |place: usize| self.0.get(place).map_or("", |asked| &asked.name);
        let mut names: Vec<String> = pairs
            .iter()
            .map(|&(one, other)| format!("{} \u{d7} {}", name(one), name(other)))
            .collect();
        names.sort_unstable();
        let differ = names.is_sorted_by(|one, other| one < other);
        let sizes = self.sizes();
        let size = |place: usize| sizes.get(place).copied().unwrap_or(MOST_CELLS);
        let cells = pairs.iter().fold(0, |sum: u64, &(one, other)| {
            sum.saturating_add(size(one).saturating_mul(size(other)))
        });
        if self.0.len() < 3 || cells > MOST_CELLS || !differ {
            return Err("not the questions of tables of two".to_owned());
        }
        Ok(pairs)
    }

    /// The codes of the answers to all questions, for each line.
    pub(crate) fn rows(&self, answers: Answers<'_>) -> Result<Vec<Vec<u32>>, Refusal> {
        answers.each(|line| {
            let given = self.values(line).ok_or_else(|| {
                let names: Vec<&str> = self.0.iter().map(|asked| asked.name.as_str()).collect();
                format!("is no line of JSON with an answer to each of: {}", names.join(", "))
            })?;
            let code = |(asked, value): (&Asked, &RawValue)| {
                let found = asked.labels.find_json(value, answers.codes);
                found.map_err(|reason| format!("to {} {reason}", asked.name))
            };
            self.0.iter().zip(given).map(code).collect()
        })
    }

    /// What a line says to each question. Other members of an object are not read.
    fn values<'a>(&self, line: &'a str) -> Option<Vec<&'a RawValue>> {
        if let Ok(mut members) = serde_json::from_str::<Members<'a>>(line) {
            return self.0.iter().map(|asked| members.text(&asked.name)).collect();
        }
        let values: Vec<&'a RawValue> = serde_json::from_str(line).ok()?;
        (values.len() == self.0.len()).then_some(values)
    }
}

/// A question for all combinations of answers.
pub(crate) struct JointTable {
    columns: Columns,
    oracle: Randomizer,
}

impl JointTable {
    pub(crate) fn read(mut asked: Description<'_>) -> Result<Self, Refusal> {
        let columns = Columns::read(asked.domain)?;
        let cells = columns.sizes().iter().fold(1, |all: u64, &size| all.saturating_mul(size));
        if cells > MOST_CELLS {
            return Err(format!("a joint table has at most {MOST_CELLS} cells"));
        }
        let oracle = Randomizer::of_codes(asked.rest.take("oracle")?, asked.epsilon, cells)?;
        asked.rest.finish()?;
        Ok(Self { columns, oracle })
    }
}

impl Question for JointTable {
    fn reports(
        &self,
        answers: Answers<'_>,
        selection: &Selection<'_>,
        noise: Noise,
    ) -> Result<Vec<Report>, Refusal> {
        let sizes = self.columns.sizes();
        let rows = self.columns.rows(answers)?;
        let codes: Vec<u32> = rows.iter().map(|row| combined(row, &sizes)).collect();
        self.oracle.reports(Nodes { codes: &codes, selection, streams: &noise.streams()? })
    }
}

/// The code of a combination of answers: the last question runs fastest.
pub(crate) fn combined(codes: &[u32], sizes: &[u64]) -> u32 {
    let code = codes.iter().zip(sizes).fold(0, |all, (&code, size)| all * size + u64::from(code));
    // Below the number of cells, which was checked.
    u32::try_from(code).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOMAIN: &str = r#"{"columns":[{"name":"sex","domain":{"labels":["f","m"]}},
        {"name":"a \u00e9","domain":{"integers":3}},{"name":"vote","domain":{"labels":["1",1]}}]}"#;

    fn read(domain: &str) -> Result<Columns, Refusal> {
        Columns::read(serde_json::from_str(domain).map_err(|error| error.to_string())?)
    }

    #[test]
    fn a_line_has_an_answer_to_each_question() -> Result<(), Refusal> {
        let columns = read(DOMAIN)?;
        let lines = [
            r#"["m",2,1]"#,
            r#"{"vote":"1","a é":0,"sex":"m","more":[]}"#,
            r#" { "vote" : 1 , "a \u00e9" : 1 , "sex" : "f" } "#,
        ];
        let rows = columns.rows(Answers { lines: &lines, codes: false })?;
        assert_eq!(rows, [[1, 2, 1], [1, 0, 0], [0, 1, 1]]);
        let rows = columns.rows(Answers { lines: &["[1,2,0]"], codes: true })?;
        assert_eq!(
            rows.iter().map(|row| combined(row, &columns.sizes())).collect::<Vec<_>>(),
            [10]
        );
        for line in [
            "",
            "m",
            r#"["m",2]"#,
            r#"["m",2,1,1]"#,
            r#"["x",2,1]"#,
            r#"["m","2",1]"#,
            r#"["m",3,1]"#,
            r#"["m",2.0,1]"#,
            r#"["m",2,true]"#,
            r#"{"sex":"m","vote":1}"#,
            r#"{"sex":"m","vote":1,"a é":1,"sex":"f"}"#,
            r#"["m",2,1] 1"#,
        ] {
            let found = columns.rows(Answers { lines: &[line], codes: false });
            assert!(found.is_err_and(|reason| reason.starts_with("answer 1 ")), "{line}");
        }
        Ok(())
    }

    #[test]
    fn other_questions_are_refused() -> Result<(), Refusal> {
        for (old, new) in [
            ("\"vote\"", "\"sex\""),
            (r#"["1",1]"#, r#"["1"]"#),
            (r#"{"integers":3}"#, "3"),
            (r#""name":"sex","#, r#""name":"sex","more":1,"#),
            (r#"{"columns""#, r#"{"more":1,"columns""#),
        ] {
            assert!(DOMAIN.contains(old) && read(&DOMAIN.replace(old, new)).is_err(), "{new}");
        }
        assert_eq!(read(DOMAIN)?.pairs()?, [(0, 1), (0, 2), (1, 2)]);
        let wide = DOMAIN.replace(r#""integers":3"#, r#""integers":1048576"#);
        assert!(read(&wide)?.pairs().is_err());
        Ok(())
    }
}
