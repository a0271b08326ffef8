//! The lists of checks, as macros that make a test of each.

/// Makes one test of every check on a ledger: `ledger_exam!(fresh)`, where `fresh` is an async
/// function that answers a fresh, empty ledger and whatever must live as long as it does.
#[macro_export]
macro_rules! ledger_exam {
    ($fresh:path) => {
        $crate::__ledger_tests!($fresh, changes: [
            a_new_record_is_answered_new_and_loads_equal,
            an_unknown_delivery_is_absent,
            several_records_are_read_at_once,
            a_second_create_answers_what_is_stored_and_changes_nothing,
            of_many_concurrent_creates_exactly_one_is_new,
            c23_c101_c103_payload_bytes_come_back_as_they_were,
            a_payload_of_4_mib_comes_back,
            changes_of_the_stored_version_land,
            a_wrong_revision_alone_loses,
            a_wrong_state_alone_loses,
            a_change_of_an_absent_record_loses_and_makes_none,
            a_repeated_change_loses_to_itself,
            c05_of_many_concurrent_claims_exactly_one_lands,
            c15_a_claim_is_seen_by_whoever_comes_next,
            one_id_of_two_tenants_is_two_deliveries,
        ]);
        $crate::__ledger_tests!($fresh, evidence: [
            evidence_comes_back_equal,
            evidence_is_never_overwritten,
            evidence_is_read_by_number_then_witness,
            c109_evidence_outlives_a_release,
            evidence_of_one_delivery_is_not_another_s,
        ]);
        $crate::__ledger_tests!($fresh, indexes: [
            due_for_look_shows_what_has_come_earliest_first,
            due_for_look_is_paged_without_gap_or_repetition,
            due_for_look_goes_on_after_what_it_showed_has_moved,
            a_claim_does_not_change_when_it_is_looked_at,
            success_leaves_the_open_index,
            a_failure_moves_the_look,
            a_look_moves_the_next_one,
            a_dead_letter_is_looked_at_until_the_dlq_was_told,
            a_hold_leaves_the_open_index_and_a_lift_comes_back,
            held_of_a_destination_is_ordered_by_deadline,
        ]);
        $crate::__ledger_tests!($fresh, budgets: [
            what_was_never_used_is_empty_at_revision_zero,
            what_is_used_comes_back_equal,
            of_two_writers_of_one_revision_one_lands,
            a_repeated_write_loses_to_itself,
            of_many_concurrent_takers_no_more_than_the_budget_get_a_slot,
            budgets_of_destinations_are_apart,
        ]);
        $crate::__ledger_tests!($fresh, listings: [
            a_listing_goes_by_tenant_newest_first,
            a_listing_shows_only_what_matches,
            a_listing_is_stable_while_deliveries_arrive,
            a_cursor_does_not_lead_to_another_tenant,
            a_delivery_is_found_by_its_id,
            dead_letters_are_summed_up_by_reason,
            dead_letters_are_listed_oldest_first,
            a_dead_letter_that_was_released_is_none,
            a_dead_letter_that_a_person_ended_is_none,
        ]);
    };
}

/// Makes one test of every check on a queue: `queue_exam!(fresh)`, where `fresh` is an async function
/// that answers a fresh [`QueueCandidate`](crate::conformance::QueueCandidate).
#[macro_export]
macro_rules! queue_exam {
    ($fresh:path) => {
        $crate::message_exam!($fresh);
        $crate::__queue_tests!($fresh, polling: [
            the_earliest_visible_is_received_first,
            an_empty_queue_has_no_next_message,
            the_whole_window_is_used_to_its_end,
            the_next_visible_time_is_told,
        ]);
    };
}

/// The same for a queue that keeps no order and tells nobody when its next message becomes visible,
/// as SQS: every check but those of polling.
#[macro_export]
macro_rules! message_exam {
    ($fresh:path) => {
        $crate::__queue_tests!($fresh, messages: [
            a_message_comes_as_it_was_sent,
            an_empty_queue_answers_nothing,
            message_ids_are_all_different,
            no_more_is_received_than_asked_for,
            c21_a_delay_is_never_early,
            a_delay_of_the_whole_window_is_taken,
            c19_a_delay_over_the_window_is_refused_and_sends_nothing,
            c23_what_is_sent_together_is_answered_one_by_one,
            concurrent_receivers_share_no_message,
            c37_a_burial_keeps_body_and_attributes,
            burials_lie_in_their_order,
            a_message_received_too_often_is_moved,
        ]);
        $crate::__queue_tests!($fresh, receipts: [
            what_is_not_acknowledged_comes_again,
            what_is_acknowledged_never_comes_again,
            a_second_acknowledgement_is_no_error,
            an_acknowledgement_counts_until_the_next_receive,
            a_stale_receipt_deletes_nothing,
            a_stale_receipt_changes_no_visibility,
            a_receipt_never_fits_another_message,
            hiding_until_later_keeps_it_hidden_until_then,
            hiding_until_the_past_shows_it_at_once,
            a_receipt_still_deletes_after_hiding,
        ]);
    };
}

/// Makes one test of every check on an office and its history of configurations: `office_exam!(fresh)`,
/// where `fresh` is an async function that answers a fresh, empty one and whatever must live as long as
/// it does.
#[macro_export]
macro_rules! office_exam {
    ($fresh:path) => {
        $crate::__ledger_tests!($fresh, acts: [
            a_book_that_nobody_wrote_in_is_empty,
            an_entry_comes_back_equal,
            an_act_is_its_entry_and_its_change,
            where_the_head_moved_neither_stands,
            where_the_order_was_overtaken_neither_stands,
            overtaken_counts_before_a_moved_head,
            concurrent_acts_leave_one_chain_without_gaps,
            of_concurrent_changes_of_one_order_one_lands,
            books_are_chained_apart,
            entries_are_paged_in_their_order,
        ]);
        $crate::__ledger_tests!($fresh, orders: [
            orders_of_every_kind_come_back_equal,
            one_id_in_two_books_is_two_orders,
            progress_compares_and_is_no_act,
            open_orders_are_listed_oldest_first,
            what_is_done_leaves_the_open_orders,
            open_orders_go_on_after_what_was_shown_is_done,
            orders_are_listed_newest_first,
            a_listing_of_orders_is_stable_while_orders_come,
        ]);
        $crate::__ledger_tests!($fresh, revisions: [
            nothing_is_in_force_at_first,
            a_configuration_is_in_force_with_its_document_and_its_entry,
            where_another_was_put_in_force_nothing_is_changed,
            where_the_head_moved_nothing_is_put_in_force,
            concurrent_configurations_are_numbered_without_gaps,
            an_earlier_configuration_comes_back_under_a_new_number,
            a_document_is_never_overwritten,
            the_history_is_paged_newest_first,
        ]);
    };
}

/// Makes one test of every check on a dead-letter queue that can be browsed: `dead_letter_box_exam!(fresh)`,
/// where `fresh` is an async function that answers a fresh
/// [`QueueCandidate`](crate::conformance::QueueCandidate) whose queue is a
/// [`DeadLetterBox`](waybill_service::sweep::DeadLetterBox) too.
#[macro_export]
macro_rules! dead_letter_box_exam {
    ($fresh:path) => {
        $crate::__queue_tests!($fresh, browsing: [
            an_empty_box_shows_nothing,
            a_dead_letter_is_shown_as_it_was_buried,
            a_message_moved_by_the_redrive_policy_is_shown,
            what_is_looked_at_is_hidden_until_then,
            each_is_taken_once_while_it_is_hidden,
            what_is_removed_is_gone,
            what_is_shown_again_is_there_at_once,
            a_stale_receipt_removes_nothing_and_shows_nothing,
        ]);
    };
}

/// The tests of one group of checks on a ledger or an office.
#[doc(hidden)]
#[macro_export]
macro_rules! __ledger_tests {
    ($fresh:path, $group:ident: [$($check:ident,)*]) => {
        mod $group {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $check() {
                    let (ledger, _lives_as_long) = $fresh().await;
                    $crate::conformance::$group::$check(ledger).await;
                }
            )*
        }
    };
}

/// The tests of one group of queue checks.
#[doc(hidden)]
#[macro_export]
macro_rules! __queue_tests {
    ($fresh:path, $group:ident: [$($check:ident,)*]) => {
        mod $group {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $check() {
                    $crate::conformance::$group::$check($fresh().await).await;
                }
            )*
        }
    };
}
