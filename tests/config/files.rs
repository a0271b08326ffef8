//! Schemas beside the configuration: bundled into one text, read from it, refused by name.

use std::cell::RefCell;

use waybill_service::config_file::bundle;

use super::{DESTINATION, faults, read};

const SCHEMA: &str = r#"{"type": "object", "required": ["currency"],
 "properties": {"currency": {"enum": ["EUR", "USD"]}, "note": {"description": "it's \\ \"quoted\""}}}
"#;

fn named(name: &str) -> String {
    format!("{DESTINATION}schema = \"{name}\"\n")
}

fn bundled(text: &str, file: &str) -> Result<String, Vec<String>> {
    bundle(text, |_| Ok(file.to_owned())).map_err(|faults| faults.iter().map(ToString::to_string).collect())
}

#[test]
fn a_configuration_and_the_files_that_it_names_become_one_text() {
    let text = named("schemas/payment.json");
    let asked = RefCell::new(Vec::new());
    let one = bundle(&text, |name| {
        asked.borrow_mut().push(name.to_owned());
        Ok(SCHEMA.to_owned())
    })
    .unwrap();
    assert_eq!(asked.into_inner(), ["schemas/payment.json"]);
    assert!(one.starts_with(&text) && one.contains(SCHEMA), "both stand in it as they are: {one}");
    let config = read(&one);
    let schema = config.schemas.values().next().unwrap();
    assert_eq!(schema.file(), "schemas/payment.json");
    assert!(schema.check(br#"{"currency": "EUR"}"#).is_ok());

    let again = bundle(&one, |name| panic!("{name} is asked for again")).unwrap();
    assert_eq!(again, one, "a bundled text is bundled already");
    assert_eq!(read(&again).revision, config.revision);
}

#[test]
fn a_changed_schema_is_another_revision_and_none_leaves_the_text_as_it_is() {
    let text = named("s.json");
    let other = SCHEMA.replace("EUR", "SEK");
    let revision = |schema: &str| read(&bundled(&text, schema).unwrap()).revision;
    assert_ne!(revision(SCHEMA), revision(&other));
    assert_eq!(bundled(DESTINATION, SCHEMA).unwrap(), DESTINATION);
    assert_eq!(bundled("this is not TOML", SCHEMA).unwrap(), "this is not TOML", "parse tells what is wrong");
}

#[test]
fn a_file_that_no_literal_can_hold_is_escaped() {
    for awkward in ["'''", "\r\n", "\u{7f}", "it's '", "\\\"\\"] {
        let schema = format!("{{\"description\": {}}}", serde_json::to_string(awkward).unwrap());
        let schema = schema.replace("\\r\\n", "x").replace('{', "{\r\n");
        let one = bundled(&named("s.json"), &schema).unwrap();
        let table: toml::Table = one.parse().unwrap();
        assert_eq!(table["files"]["s.json"].as_str(), Some(schema.as_str()), "{awkward:?}");
        assert_eq!(read(&one).schemas.len(), 1);
    }
}

#[test]
fn a_file_that_cannot_be_had_is_named_with_its_key() {
    let rule = "the path of a file beside the configuration, such as \"schemas/payment.json\": relative, with /, \
                without .. or control characters, at most 256 bytes";
    for name in ["/etc/passwd", "../s.json", "a/../s.json", "./s.json", "a//s.json", "", "c:s.json"] {
        let fault = format!("line 5: destinations.d.schema: is not such a name ({rule})");
        assert_eq!(bundled(&named(name), SCHEMA), Err(vec![fault]), "{name}");
    }
    let missing = bundle(&named("s.json"), |_| Err("there is no such file".to_owned())).unwrap_err();
    let said = format!("line 5: destinations.d.schema: \"s.json\": there is no such file ({rule})");
    assert_eq!(missing[0].to_string(), said);
    let large = bundled(&named("s.json"), &" ".repeat(256 * 1024 + 1)).unwrap_err();
    assert_eq!(large, ["line 5: destinations.d.schema: \"s.json\" has 262145 bytes (at most 262144)"]);
}

#[test]
fn a_schema_that_cannot_be_used_is_refused_when_the_configuration_is_read() {
    let rule = "(a JSON Schema that refers only to itself)";
    let refused = |schema: &str| faults(&bundled(&named("s.json"), schema).unwrap());
    for (schema, said) in [
        ("{", "is not JSON: EOF while parsing an object at line 1 column 1"),
        ("true", "is not a JSON object"),
        (r#"{"type": 7}"#, "is not a JSON Schema that can be used: /type: "),
        (r#"{"$ref": "https://example.com/other.json"}"#, "is not a JSON Schema that can be used: "),
        (r#"{"$ref": "file:///etc/passwd"}"#, "is not a JSON Schema that can be used: "),
        (r##"{"$ref": "#/$defs/nowhere"}"##, "is not a JSON Schema that can be used: "),
        (r#"{"pattern": "(?=a)b"}"#, "is not a JSON Schema that can be used: "),
    ] {
        let faults = refused(schema);
        assert_eq!(faults.len(), 1, "{schema}: {faults:?}");
        let begins = format!("line 5: destinations.d.schema: \"s.json\" {said}");
        assert!(faults[0].starts_with(&begins) && faults[0].ends_with(rule), "{schema}: {}", faults[0]);
    }
}

#[test]
fn a_bundle_holds_what_is_named_and_nothing_else() {
    assert_eq!(
        faults(&named("s.json")),
        [
            "line 5: destinations.d.schema: \"s.json\" is not in [files] (a file that is bundled with the configuration)"
        ]
    );
    assert_eq!(
        faults(&format!("{DESTINATION}[files]\n\"s.json\" = \"{{}}\"\n")),
        ["line 6: files.\"s.json\": is named by no destination (only files that a schema key names)"]
    );
}
