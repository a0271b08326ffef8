//! Who may act on what: the operator's tenants, and what is across tenants.

use waybill_domain::authority::{Authority, Book};
use waybill_domain::identity::TenantId;

fn tenant(name: &str) -> TenantId {
    TenantId::parse(name).unwrap()
}

fn of(names: &[&str]) -> Authority {
    Authority::Tenants(names.iter().map(|name| tenant(name)).collect())
}

#[test]
fn a_book_is_a_tenant_s_or_across_tenants() {
    for (of, name) in [(Some(tenant("acme")), "acme"), (None, "*")] {
        let book = Book::from(of.clone());
        assert_eq!((book.as_str(), book.tenant()), (name, of.as_ref()));
        assert_eq!(format!("{book:<6}"), format!("{name:<6}"), "a column pads it");
    }
}

#[test]
fn an_act_is_about_the_tenant_that_is_named_or_the_operator_s_only_one() {
    let (acme, both) = (of(&["acme"]), of(&["acme", "globex"]));
    // The operator, the tenant that is named; the book, or why it is refused.
    let table = [
        (&Authority::Across, None, Ok("*")),
        (&Authority::Across, Some("acme"), Ok("acme")),
        (&acme, None, Ok("acme")),
        (&acme, Some("acme"), Ok("acme")),
        (&acme, Some("globex"), Err("the operator is not authorised for tenant globex")),
        (&both, Some("globex"), Ok("globex")),
        (
            &both,
            None,
            Err("this concerns more than one tenant, and the operator is authorised for acme, globex only"),
        ),
    ];
    for (authority, named, expected) in table {
        let book = authority.book(named.map(tenant).as_ref());
        let said = book.map(|book| book.to_string()).map_err(|refused| refused.to_string());
        assert_eq!(said, expected.map(str::to_owned).map_err(str::to_owned), "{authority:?} {named:?}");
    }
    assert!(acme.check(&Book::Across).is_err(), "one tenant is not all");
}
