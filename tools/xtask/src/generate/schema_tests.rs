#![allow(clippy::unwrap_used)]
use super::*;

const EXAMPLE: &str = "\
# a comment
api 7 Example
versions 1-5
unstable 5
flexible 3+

request
  Name string 2+ null=3+ default=null
  Topics []Topic
    Id uuid 4+ ignorable
    Extra int32 3+ tag=0 default=-1
  struct Shared
    Value int8

response
  ErrorCode int16
";

#[test]
fn an_api_is_read_with_all_its_facts() {
    let api = parse(EXAMPLE).unwrap();
    assert_eq!((api.key, api.name.as_str(), api.first_flexible, api.last_served()), (7, "Example", Some(3), 4));
    let structs = &api.request.structs;
    let names: Vec<&str> = structs.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["ExampleRequest", "Topic", "Shared"]);
    let name = &structs[0].fields[0];
    assert_eq!(name.versions, Versions { first: 2, last: i16::MAX });
    assert_eq!((name.nullable, name.default.as_deref()), (Some(Versions { first: 3, last: i16::MAX }), Some("null")));
    assert_eq!(structs[0].fields[1].kind, Kind::Array(Box::new(Kind::Struct("Topic".to_owned()))));
    assert!(structs[1].fields[0].ignorable);
    assert_eq!(structs[1].fields[1].tag, Some(0));
}

#[test]
fn mistakes_are_refused_with_a_sentence() {
    for (right, wrong, sentence) in [
        ("null=3+", "nul=3+", "line 8: `nul=3+` is not understood"),
        ("  Name", "   Name", "line 8: indented by an odd number of spaces"),
        ("    Id", "      Id", "line 10: indented wrongly"),
        ("flexible 3+", "flexible x", "`x` is not a range of versions"),
        ("versions 1-5", "versions 5-1", "`5-1` is an empty range of versions"),
        ("unstable 5", "nonsense", "line 4: not understood"),
        ("  ErrorCode int16", "  Errors []Nowhere", "the type of Errors is nowhere described"),
        ("response", "answer", "there is no section `response`"),
    ] {
        assert!(EXAMPLE.contains(right), "{right}");
        let error = parse(&EXAMPLE.replacen(right, wrong, 1)).unwrap_err();
        assert!(error.contains(sentence), "{wrong}: {error}");
    }
}

#[test]
fn ranges_become_conditions_only_where_they_say_something() {
    let known = Versions { first: 3, last: 13 };
    let condition = |text: &str| Versions::parse(text).unwrap().condition(known);
    assert_eq!(condition("0+"), None);
    assert_eq!(condition("3-13"), None);
    assert_eq!(condition("0-12").as_deref(), Some("version <= 12"));
    assert_eq!(condition("9+").as_deref(), Some("version >= 9"));
    assert_eq!(condition("7").as_deref(), Some("version == 7"));
    assert_eq!(condition("5-8").as_deref(), Some("(5..=8).contains(&version)"));
}
