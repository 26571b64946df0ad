use super::*;

const PLAN: &str = r#"{"format":"turnout-plan","oracle":{"domain":{"integers":2},"epsilon":1.0,"name":"direct_encoding"},"participation":{"kind":"everyone"},"version":1}"#;
const IDENTITY: &str = "0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a";

/// As anybody writes it who reads the description of the format.
fn sealed(kind: &Kind, header: &str, sums: &[u8]) -> Vec<u8> {
    let mut data = kind.magic.to_vec();
    data.extend([4, 0, 0, 0]);
    data.extend(u32::try_from(header.len()).unwrap_or(0).to_le_bytes());
    data.extend(header.as_bytes());
    data.extend(sums);
    let digest = Sha256::digest(&data);
    data.extend(digest);
    data
}

fn header() -> String {
    format!(
        r#"{{"design":null,"left_out":{{"absent":0,"duplicates":2,"refused":0,"unanswered":0,"ungrouped":0}},"nodes":5,"origin":{{"identities":["{IDENTITY}"],"rounds":{{"{IDENTITY}":5}}}},"plan":{PLAN},"received":5}}"#
    )
}

fn grouped() -> String {
    let group = |key, nodes: u64| {
        format!(
            r#"{{"design":null,"key":{key},"nodes":{nodes},"origin":{{"identities":["{IDENTITY}"]}},"received":{nodes}}}"#
        )
    };
    let (one, other) = (group(r#"["DE",{"date":"2026-01-31"}]"#, 3), group("[null,null]", 2));
    format!(
        r#"{{"groups":[{one},{other}],"names":["country","day"],"origin":{{"identities":["{IDENTITY}"]}},"plan":{PLAN}}}"#
    )
}

#[test]
fn a_tally_has_one_form() -> Result<(), Error> {
    let data = sealed(&TALLY, &header(), &[7; 16]);
    let tally = StoredTally::read(&data)?;
    assert_eq!((tally.facts().nodes, tally.sums()), (5, &[7; 16][..]));
    assert_eq!(tally.to_bytes()?, data);
    let data = sealed(&GROUPS, &grouped(), &[7; 32]);
    let tally = StoredGroups::read(&data)?;
    assert_eq!((tally.facts().groups.len(), tally.sums().len()), (2, 32));
    assert_eq!(tally.to_bytes()?, data);
    assert!(StoredTally::read(&data).is_err());
    Ok(())
}

#[test]
fn every_changed_byte_is_seen() {
    for place in 0..sealed(&TALLY, &header(), &[7; 16]).len() {
        let mut data = sealed(&TALLY, &header(), &[7; 16]);
        assert!(StoredTally::read(&data[..place]).is_err());
        data[place] ^= 1;
        assert!(StoredTally::read(&data).is_err());
    }
}

#[test]
fn what_contradicts_itself_is_no_tally() {
    for (old, new, words) in [
        (r#""received":5"#, r#""received":6"#, "6 reports of 5 nodes"),
        (r#""received":5"#, r#""received":5.0"#, "the received of a tally must be an integer"),
        (r#""received":5"#, r#""recieved":5"#, "what is known of it"),
        (
            r#""design":null"#,
            r#""design":{"probability":2,"probability_squared":1}"#,
            "sums of prob",
        ),
        (
            r#""design":null"#,
            r#""design":{"probability":1,"probability_squared":2}"#,
            "the design of",
        ),
        (r#""duplicates":2"#, r#""duplicates":0"#, "the left_out of a tally must be five numbers"),
        ("0a\"]", "0A\"]", "the origin of a tally must be its collections"),
        (":5}}", ":0}}", "the origin of a tally must be its collections"),
        ("turnout-plan", "turnout-plane", "its format is not"),
        (PLAN, "7", "the plan of a tally must be a plan"),
        ("{\"design", "[{\"design", "no comma"),
    ] {
        let text = header().replacen(old, new, 1);
        assert_ne!(text, header(), "{old}");
        let data = sealed(&TALLY, &text, &[7; 16]);
        let found = StoredTally::read(&data).map_err(|error| error.to_string());
        assert!(found.as_ref().is_err_and(|error| error.contains(words)), "{new}: {found:?}");
    }
}

#[test]
fn what_contradicts_itself_is_no_tally_by_groups() {
    for (old, new, words) in [
        ("[null,null]", r#"["DE",{"date":"2026-01-31"}]"#, "different ones"),
        ("[null,null]", "[null]", "different ones"),
        ("[null,null]", "[null,[]]", "the key of a grouped tally"),
        (r#"["country","day"]"#, r#"["day","day"]"#, "different columns"),
        (r#"["country","day"]"#, "[1,2]", "the names of a grouped tally"),
        (r#""received":2"#, r#""received":3"#, "3 reports of 2 nodes"),
        (r#""names""#, r#""name""#, "its members must be"),
        ("}],\"names", "}, 7],\"names", "the key of a grouped tally"),
    ] {
        let text = grouped().replacen(old, new, 1);
        assert_ne!(text, grouped(), "{old}");
        let data = sealed(&GROUPS, &text, &[7; 32]);
        let found = StoredGroups::read(&data).map_err(|error| error.to_string());
        assert!(found.as_ref().is_err_and(|error| error.contains(words)), "{new}: {found:?}");
    }
    let odd = sealed(&GROUPS, &grouped(), &[7; 31]);
    assert!(StoredGroups::read(&odd).is_err());
}
