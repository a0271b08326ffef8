//! Who works at the command line, and what they are authorised for.
//!
//! On the embedded backend the configuration in force says it: whoever may write the data file could
//! do anything, so this keeps honest people from mistakes, and the audit says what was tried. On AWS
//! the caller's own policies say it, and AWS holds them to it.

use waybill_domain::address::Locality;
use waybill_domain::audit;
use waybill_domain::authority::{Authority, Book, Unauthorised};
use waybill_domain::fault::InvalidField;
use waybill_domain::identity::TenantId;
use waybill_service::acts::Desk;
use waybill_service::config::Config;
use waybill_service::config_file::{self, Rules, SecretStores};
use waybill_service::office::{Office, Revisions};
use waybill_service::operators::authority_of;
use waybill_service::ports::PortResult;
use waybill_service::schedule::history::dated;
use waybill_system::{SystemClock, SystemDice};

use super::Globals;
use crate::backend::{Opened, on_office};
use crate::exit::Failure;

/// The desk at which this process enters acts.
pub(super) type OwnDesk<'a, O> = Desk<'a, O, SystemClock, SystemDice>;

pub(super) fn desk<O>(office: &O) -> OwnDesk<'_, O> {
    Desk { office, clock: &SystemClock, dice: &SystemDice }
}

/// Whoever gave the command.
pub(super) struct Operator {
    name: Result<String, InvalidField>,
    authority: Authority,
    /// Whether the store itself lets an operator of some tenants read these tenants' items alone.
    is_kept_to_tenants: bool,
    config: Option<Config>,
    command: &'static str,
}

/// Who acts, and what the configuration in force calls them.
struct Identity {
    who: Result<String, InvalidField>,
    called: Result<String, InvalidField>,
}

impl Operator {
    /// Who gives `command`. Somebody who is no operator gets no further.
    pub(super) async fn of(
        globals: &Globals,
        opened: &Opened,
        command: &'static str,
    ) -> Result<Self, Failure> {
        let Identity { who: name, called } = identity(globals.operator.as_deref(), opened)?;
        let secrets = globals.backend().secret_stores();
        let config = on_office!(*opened, |_, office| in_force(office, secrets).await)?;
        let is_kept_to_tenants = !opened.carries_out_orders();
        let is_bounded = config.as_ref().is_some_and(|config| !config.operators.is_empty());
        let (Some(config), true) = (&config, is_bounded) else {
            return Ok(Self { name, authority: Authority::Across, is_kept_to_tenants, config, command });
        };
        let (name, called) = (name?, called?);
        match authority_of(config, &called) {
            Ok(authority) => {
                let config = Some(config.clone());
                Ok(Self { name: Ok(name), authority, is_kept_to_tenants, config, command })
            }
            Err(error) => {
                let sentence = error.to_string();
                let noted = note_refusal(opened, Book::Across, &name, command, &sentence).await;
                Err(refused(sentence, noted))
            }
        }
    }

    /// Their name, for whatever is entered in it.
    pub(super) fn name(&self) -> Result<&str, Failure> {
        self.name.as_deref().map_err(|invalid| invalid.clone().into())
    }

    /// The configuration in force, if one was ever applied.
    pub(super) fn config_at_hand(&self) -> Option<&Config> {
        self.config.as_ref()
    }

    /// The configuration in force.
    pub(super) fn config(&self) -> Result<&Config, Failure> {
        let sentence =
            "no configuration was applied yet: waybill config apply FILE --why \"why\" puts one in force";
        self.config.as_ref().ok_or_else(|| Failure::failed(sentence))
    }

    /// Whose matter the command is, when its line names `tenant`, or nothing at all.
    pub(super) async fn book(&self, opened: &Opened, tenant: Option<&TenantId>) -> Result<Book, Failure> {
        match self.authority.book(tenant) {
            Ok(book) => Ok(book),
            Err(beyond) => Err(self.refuse(opened, &beyond).await),
        }
    }

    /// The same, for what filters by tenant: none is across all of them.
    pub(super) async fn tenant(
        &self,
        opened: &Opened,
        tenant: Option<&TenantId>,
    ) -> Result<Option<TenantId>, Failure> {
        Ok(self.book(opened, tenant).await?.tenant().cloned())
    }

    /// Refuses what they are not authorised for, and enters that it was tried.
    pub(super) async fn check(&self, opened: &Opened, book: &Book) -> Result<(), Failure> {
        match self.authority.check(book) {
            Ok(()) => Ok(()),
            Err(beyond) => Err(self.refuse(opened, &beyond).await),
        }
    }

    /// Whether they may know of this tenant's matters.
    pub(super) fn may_see(&self, tenant: &TenantId) -> bool {
        self.authority.check(&Book::Tenant(tenant.clone())).is_ok()
    }

    /// Their tenants, where they are bounded to some.
    pub(super) fn tenants(&self) -> &[TenantId] {
        match &self.authority {
            Authority::Tenants(own) => own,
            Authority::Across => &[],
        }
    }

    /// Whether they are authorised across tenants.
    pub(super) fn is_across(&self) -> bool {
        self.authority == Authority::Across
    }

    /// Whether they may read what is entered across tenants, as far as it is about their own.
    pub(super) fn may_read_across(&self) -> bool {
        self.is_across() || !self.is_kept_to_tenants
    }

    /// The books that they may read.
    pub(super) async fn books(&self, office: &impl Office) -> PortResult<Vec<Book>> {
        match &self.authority {
            Authority::Tenants(own) => Ok(own.iter().cloned().map(Book::Tenant).collect()),
            Authority::Across => office.books().await,
        }
    }

    async fn refuse(&self, opened: &Opened, beyond: &Unauthorised) -> Failure {
        let Ok(name) = &self.name else { return Failure::refused(beyond.to_string()) };
        let lifted_by = match beyond {
            Unauthorised::Tenant(tenant) => {
                format!("an operator whose tenants are [\"{tenant}\"] or [\"*\"] in the configuration may")
            }
            Unauthorised::Across(_) => {
                "name one of these with --tenant where the command takes it, or ask an operator whose tenants \
                 are [\"*\"]"
                    .to_owned()
            }
        };
        let book = match &self.authority {
            Authority::Tenants(own) => Book::from(own.first().cloned()),
            Authority::Across => Book::Across,
        };
        let sentence = format!("{} is refused for {name}: {beyond}; {lifted_by}", self.command);
        refused(sentence, note_refusal(opened, book, name, self.command, &beyond.to_string()).await)
    }
}

/// A refusal, and what kept it out of the audit if anything did.
fn refused(sentence: String, noted: Result<(), Failure>) -> Failure {
    match noted {
        Ok(()) => Failure::refused(sentence),
        Err(failure) => Failure::refused(format!("{sentence} (not in the audit: {failure})")),
    }
}

/// Whoever the line or the environment names; on AWS whoever the credentials belong to, and no other.
fn identity(said: Option<&str>, opened: &Opened) -> Result<Identity, Failure> {
    match opened {
        Opened::Embedded(_) => {
            let who = named(said);
            Ok(Identity { called: who.clone(), who })
        }
        #[cfg(feature = "aws")]
        Opened::Aws(_) if said.is_some() => Err(Failure::wrong_input(
            "--operator (and WAYBILL_OPERATOR) is for the embedded backend: on AWS the caller's credentials say \
             who acts",
        )),
        #[cfg(feature = "aws")]
        Opened::Aws(store) => {
            let caller = &store.caller;
            Ok(Identity { who: audit::who(caller.arn()), called: audit::who(caller.name()) })
        }
    }
}

/// The name that the line or the environment says, or the user's on this machine.
fn named(said: Option<&str>) -> Result<String, InvalidField> {
    let unknown = || {
        let rule = "--operator NAME or WAYBILL_OPERATOR says who acts";
        InvalidField::new("operator", "this machine has no name for its user", rule)
    };
    match said {
        Some(name) => audit::who(name),
        None => audit::who(&whoami::username().map_err(|_| unknown())?),
    }
}

/// The configuration in force. Nothing is sent from here: any address will do.
async fn in_force(office: &impl Revisions, secrets: SecretStores) -> Result<Option<Config>, Failure> {
    let Some(revision) = office.in_force().await? else { return Ok(None) };
    let name = &revision.revision;
    let document = office.document(name).await?.ok_or_else(|| {
        Failure::failed(format!("the configuration {name} is in force, and its document is missing"))
    })?;
    let rules = Rules { locality: Locality::AllowLocal, secrets, worker_runs: None };
    config_file::parse(&document, rules).map(|config| Some(dated(config, &revision))).map_err(|faults| {
        let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
        let sentence =
            format!("the configuration {name} is in force, and this version of waybill finds fault with it");
        Failure::failed(format!("{sentence}: {}", faults.join("; ")))
    })
}

async fn note_refusal(
    opened: &Opened,
    book: Book,
    by: &str,
    command: &str,
    why: &str,
) -> Result<(), Failure> {
    on_office!(*opened, |_, office| {
        desk(office).enter_refusal(book, by, command, why).await.map_err(Failure::from)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_acts_has_a_name_of_their_own() {
        assert_eq!(named(Some(" maria ")).unwrap(), "maria");
        for name in ["", "  ", "automation", "a\nb"] {
            assert_eq!(named(Some(name)).unwrap_err().field, "operator", "{name:?}");
        }
    }
}
