//! A check that no list names is a check that nobody sits.

const GROUPS: [(&str, &str); 12] = [
    ("acts", include_str!("../../shared/testkit/src/conformance/acts.rs")),
    ("browsing", include_str!("../../shared/testkit/src/conformance/browsing.rs")),
    ("budgets", include_str!("../../shared/testkit/src/conformance/budgets.rs")),
    ("changes", include_str!("../../shared/testkit/src/conformance/changes.rs")),
    ("evidence", include_str!("../../shared/testkit/src/conformance/evidence.rs")),
    ("indexes", include_str!("../../shared/testkit/src/conformance/indexes.rs")),
    ("listings", include_str!("../../shared/testkit/src/conformance/listings.rs")),
    ("messages", include_str!("../../shared/testkit/src/conformance/messages.rs")),
    ("orders", include_str!("../../shared/testkit/src/conformance/orders.rs")),
    ("polling", include_str!("../../shared/testkit/src/conformance/polling.rs")),
    ("receipts", include_str!("../../shared/testkit/src/conformance/receipts.rs")),
    ("revisions", include_str!("../../shared/testkit/src/conformance/revisions.rs")),
];

const LISTS: &str = include_str!("../../shared/testkit/src/conformance/exam.rs");

#[test]
fn every_check_is_on_its_list() {
    for (group, source) in GROUPS {
        let list = LISTS.split_once(&format!("{group}: [")).unwrap().1.split_once(']').unwrap().0;
        let listed: Vec<&str> = list.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
        let written: Vec<&str> = source
            .lines()
            .filter_map(|line| line.strip_prefix("pub async fn ")?.split_once('<'))
            .map(|(name, _)| name)
            .collect();
        assert_eq!(listed, written, "{group}: listed, and written");
    }
}
