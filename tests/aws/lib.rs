//! Tests against a local AWS. See `conformance/`.
