//! JSON pointers (RFC 6901) into a document that is otherwise left alone.
//!
//! The document is read past, never built: its depth costs no stack, and its bytes stay as they are.
//! A key on the way that stands there twice is refused, because the next reader may take the other one.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::fault::InvalidField;

/// A place in a document, such as `/data/cutoff_at`: 1 to 16 names or positions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonPointer {
    written: String,
    tokens: Vec<String>,
}

impl JsonPointer {
    /// Reads a pointer. `~1` stands for a slash in a name, `~0` for a tilde.
    pub fn parse(field: &str, text: &str) -> Result<Self, InvalidField> {
        let rule = "a JSON pointer of at most 16 names, such as /data/id";
        let refuse = |fault: &str| Err(InvalidField::new(field, fault, rule));
        let Some(names) = text.strip_prefix('/') else { return refuse("does not begin with a slash") };
        if names.replace("~0", "").replace("~1", "").contains('~') {
            return refuse("has a ~ that is neither ~0 nor ~1");
        }
        let tokens: Vec<_> =
            names.split('/').map(|name| name.replace("~1", "/").replace("~0", "~")).collect();
        if tokens.len() > 16 {
            return refuse("has too many names");
        }
        Ok(Self { written: text.to_owned(), tokens })
    }

    /// What stands at this place of a document, if anything does. The error says why the document is
    /// none.
    pub fn find<'d>(&self, document: &'d str) -> Result<Option<&'d RawValue>, serde_json::Error> {
        let mut reader = serde_json::Deserializer::from_str(document);
        let found = Seek(&self.tokens).deserialize(&mut reader)?;
        reader.end()?;
        Ok(found)
    }
}

impl fmt::Display for JsonPointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.written)
    }
}

/// Reads on to what stands at the rest of a pointer.
struct Seek<'p>(&'p [String]);

impl<'de> DeserializeSeed<'de> for Seek<'_> {
    type Value = Option<&'de RawValue>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        if self.0.is_empty() {
            return serde::Deserialize::deserialize(from).map(Some);
        }
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seek<'_> {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let Some((name, rest)) = self.0.split_first() else { return Ok(None) };
        let mut found = None;
        while let Some(key) = map.next_key::<String>()? {
            if key != *name {
                map.next_value::<IgnoredAny>()?;
            } else if found.is_some() {
                return Err(A::Error::custom(format_args!("{name:?} is given twice")));
            } else {
                found = Some(map.next_value_seed(Seek(rest))?);
            }
        }
        Ok(found.flatten())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let Some((position, rest)) = self.0.split_first() else { return Ok(None) };
        let is_canonical = position == "0" || !position.starts_with(['0', '+']);
        let position: Option<usize> = position.parse().ok().filter(|_| is_canonical);
        let mut found = None;
        for at in 0.. {
            if position == Some(at) {
                let Some(value) = list.next_element_seed(Seek(rest))? else { break };
                found = value;
            } else if list.next_element::<IgnoredAny>()?.is_none() {
                break;
            }
        }
        Ok(found)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }
}
