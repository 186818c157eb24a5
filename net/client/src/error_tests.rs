use super::*;

#[test]
fn zero_is_no_error_and_others_are_named() {
    assert_eq!(ClientError::check(0, "x"), Ok(()));
    let error = ClientError::check(41, "creating topic t").map_err(|error| error.to_string());
    assert!(error.is_err_and(|text| text.starts_with("creating topic t: ") && text.ends_with("(41)")));
    let error = ClientError::check(30_000, "x");
    assert!(matches!(error, Err(ClientError::UnknownBrokerError { code: 30_000, .. })));
}

#[test]
fn the_brokers_own_words_come_first_if_there_are_any() {
    let text = |message| ClientError::check_with(3, "x", message).map_err(|error| error.to_string());
    assert_eq!(text(Some("no such thing")), Err("x: no such thing (3)".to_string()));
    assert_eq!(text(Some("")), text(None));
}

#[test]
fn what_a_person_can_do_is_in_the_sentence() {
    let nobody = ClientError::NoBroker { addresses: "127.0.0.1:9092".into(), reason: "refused".into() }.to_string();
    assert!(nobody.starts_with("no broker answered at 127.0.0.1:9092") && nobody.contains("ringlog serve"), "{nobody}");
    assert!(ClientError::UnknownTopic { topic: "t".into() }.to_string().contains("ringlog topic create t"));
}
