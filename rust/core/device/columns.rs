//! Several questions at once. An answer is a line of JSON. It is an object with the answer to each
//! question by its name, or a list of the answers in the order of the plan.

use super::error::{Error, Result, refused};
use super::labels::Labels;
use super::members::Members;
use crate::wire::json::Json;

/// The most combinations of answers, and the most cells of all tables of two.
pub(crate) const MOST_CELLS: u64 = 1 << 20;

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
    pub(crate) fn read(domain: &Json<'_>) -> Result<Self> {
        let mut members = Members::read(domain)?;
        let columns: Vec<Members<'_, '_>> = members.take("columns")?;
        members.finish()?;
        let mut found: Vec<Asked> = Vec::new();
        let mut names = std::collections::HashSet::new();
        for mut column in columns {
            let name: String = column.take("name")?;
            let domain: &Json<'_> = column.take("domain")?;
            column.finish()?;
            let labels = Labels::read(domain)?;
            if labels.size() < 2 || !names.insert(name.clone()) {
                return Err(refused("a question has one answer, or the name of another"));
            }
            found.push(Asked { name, domain: domain.raw().to_owned(), labels });
        }
        if found.len() < 2 {
            return Err(refused("a domain of columns has at least two questions"));
        }
        Ok(Self(found))
    }

    /// How many questions there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// How many answers each question has.
    pub(crate) fn sizes(&self) -> Vec<u64> {
        self.0.iter().map(|asked| asked.labels.size()).collect()
    }

    /// Whether the domain of a question stands in the plan like that.
    pub(crate) fn has(&self, question: usize, domain: &Json<'_>) -> bool {
        self.0.get(question).is_some_and(|asked| asked.domain == domain.raw())
    }

    /// The pairs of questions, as places; refuses what Python does not ask.
    pub(crate) fn pairs(&self) -> Result<Vec<(usize, usize)>> {
        let none = || refused("not the questions of tables of two");
        let count = self.len() as u64;
        // Each table has four cells at least.
        if count < 3 || count * (count - 1) / 2 > MOST_CELLS / 4 {
            return Err(none());
        }
        let mut pairs = Vec::new();
        let (mut names, mut cells) = (std::collections::HashSet::new(), 0_u64);
        for (one, first) in self.0.iter().enumerate() {
            for (other, second) in self.0.iter().enumerate().skip(one + 1) {
                let table = first.labels.size().saturating_mul(second.labels.size());
                cells = cells.saturating_add(table);
                if !names.insert(format!("{} \u{d7} {}", first.name, second.name)) {
                    return Err(none());
                }
                pairs.push((one, other));
            }
        }
        if cells > MOST_CELLS { Err(none()) } else { Ok(pairs) }
    }

    /// Adds the codes of the answers to all questions in a line.
    pub(crate) fn find(&self, line: &str, given: bool, codes: &mut Vec<u32>) -> Result<(), String> {
        let none = || {
            let names: Vec<&str> = self.0.iter().map(|asked| asked.name.as_str()).collect();
            format!("is no line of JSON with an answer to each of: {}", names.join(", "))
        };
        let json = Json::read(line).map_err(|_| none())?;
        // Other members of an object are not read.
        let values: Option<Vec<&Json<'_>>> = match json.list() {
            Some(values) => Some(values.iter().collect()),
            None => self.0.iter().map(|asked| json.member(&asked.name)).collect(),
        };
        let values = values.filter(|values| values.len() == self.len()).ok_or_else(none)?;
        for (asked, value) in self.0.iter().zip(values) {
            let code = asked.labels.find_json(value, given);
            codes.push(code.map_err(|reason| format!("to {} {reason}", asked.name))?);
        }
        Ok(())
    }

    /// The code of each answer to one question, of rows with one to each of all questions.
    pub(crate) fn column(&self, codes: &[u32], question: usize) -> Vec<u32> {
        codes.chunks_exact(self.len()).filter_map(|row| row.get(question).copied()).collect()
    }

    /// Refuses codes of which one is outside its question, by the place of the answer.
    pub(crate) fn check(&self, codes: &[u32]) -> Result<()> {
        let sizes = self.sizes();
        for (position, row) in codes.chunks(self.len()).enumerate() {
            let inside = row.len() == sizes.len()
                && row.iter().zip(&sizes).all(|(&code, &size)| u64::from(code) < size);
            if !inside {
                let reason = "is no row of codes of the questions".to_owned();
                return Err(Error::Answer { position, reason });
            }
        }
        Ok(())
    }
}

/// The code of a combination of answers: the last question runs fastest.
pub(crate) fn combined(codes: &[u32], sizes: &[u64]) -> u32 {
    let code = codes.iter().zip(sizes).fold(0_u64, |all, (&code, &size)| {
        all.saturating_mul(size).saturating_add(u64::from(code))
    });
    // Below the number of cells, which was checked.
    u32::try_from(code).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOMAIN: &str = r#"{"columns":[{"name":"sex","domain":{"labels":["f","m"]}},
        {"name":"a \u00e9","domain":{"integers":3}},{"name":"vote","domain":{"labels":["1",1]}}]}"#;

    fn read(domain: &str) -> Result<Columns> {
        Columns::read(&Json::read(domain).map_err(|flaw| refused(flaw.to_string()))?)
    }

    fn row(columns: &Columns, line: &str, given: bool) -> Result<Vec<u32>, String> {
        let mut codes = Vec::new();
        columns.find(line, given, &mut codes).map(|()| codes)
    }

    #[test]
    fn a_line_has_an_answer_to_each_question() -> Result<()> {
        let columns = read(DOMAIN)?;
        for (line, codes) in [
            (r#"["m",2,1]"#, [1, 2, 1]),
            (r#"{"vote":"1","a é":0,"sex":"m","more":[]}"#, [1, 0, 0]),
            (r#" { "vote" : 1 , "a \u00e9" : 1 , "sex" : "f" } "#, [0, 1, 1]),
        ] {
            assert_eq!(row(&columns, line, false), Ok(codes.to_vec()));
        }
        let codes = row(&columns, "[1,2,0]", true).unwrap_or_default();
        assert_eq!(combined(&codes, &columns.sizes()), 10);
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
            assert!(row(&columns, line, false).is_err(), "{line}");
        }
        assert!(columns.check(&[1, 2, 1, 0, 0, 0]).is_ok());
        for codes in [&[2, 0, 0][..], &[0, 3, 0], &[0, 0]] {
            assert!(columns.check(codes).is_err(), "{codes:?}");
        }
        Ok(())
    }

    #[test]
    fn other_questions_are_refused() -> Result<()> {
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
