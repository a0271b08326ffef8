//! Who may act on what: an operator is authorised for some tenants, or across all of them.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::identity::TenantId;

/// The tenants that an operator, an order or a book of the audit is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Book {
    /// One tenant.
    Tenant(TenantId),
    /// More than one, or the system itself. Written as `*`.
    Across,
}

impl Book {
    /// The tenant's name, or `*`.
    pub fn as_str(&self) -> &str {
        match self {
            Book::Tenant(tenant) => tenant.as_str(),
            Book::Across => "*",
        }
    }

    /// The tenant, where it is one.
    pub fn tenant(&self) -> Option<&TenantId> {
        match self {
            Book::Tenant(tenant) => Some(tenant),
            Book::Across => None,
        }
    }
}

impl From<Option<TenantId>> for Book {
    fn from(tenant: Option<TenantId>) -> Self {
        tenant.map_or(Book::Across, Book::Tenant)
    }
}

impl std::fmt::Display for Book {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// What an operator is authorised for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Authority {
    /// These tenants, at least one.
    Tenants(Vec<TenantId>),
    /// Across tenants.
    Across,
}

/// An act that goes beyond what the operator is authorised for.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Unauthorised {
    /// The tenant is not among the operator's.
    #[error("the operator is not authorised for tenant {0}")]
    Tenant(TenantId),
    /// The act concerns more than one tenant, or the whole system.
    #[error("this concerns more than one tenant, and the operator is authorised for {0} only")]
    Across(String),
}

impl Authority {
    /// Whether it covers `book`.
    pub fn check(&self, book: &Book) -> Result<(), Unauthorised> {
        match (self, book) {
            (Authority::Across, _) => Ok(()),
            (Authority::Tenants(own), Book::Tenant(tenant)) if own.contains(tenant) => Ok(()),
            (Authority::Tenants(_), Book::Tenant(tenant)) => Err(Unauthorised::Tenant(tenant.clone())),
            (Authority::Tenants(own), Book::Across) => {
                let names: Vec<&str> = own.iter().map(TenantId::as_str).collect();
                Err(Unauthorised::Across(names.join(", ")))
            }
        }
    }

    /// The book that an act is about when its operator names `tenant`, or nothing at all: with one
    /// tenant of their own, that is meant.
    pub fn book(&self, tenant: Option<&TenantId>) -> Result<Book, Unauthorised> {
        let book = match (self, tenant) {
            (_, Some(tenant)) => Book::Tenant(tenant.clone()),
            (Authority::Tenants(own), None) if own.len() == 1 => Book::Tenant(own[0].clone()),
            (_, None) => Book::Across,
        };
        self.check(&book).map(|()| book)
    }
}
