//! Orders and their audit: an act is one transaction, so entry and change stand both or neither.

use rusqlite::{Connection, OptionalExtension, Row, params};
use waybill_domain::audit::{Entry, NOTHING_BEFORE};
use waybill_domain::authority::Book;
use waybill_domain::identity::TenantId;
use waybill_domain::order::{Order, OrderChange, OrderId};
use waybill_service::office::{Entered, Office};
use waybill_service::ports::{Clock, Cursor, Page, PortResult};

use crate::cursor;
use crate::fault::Fault;
use crate::rows::{from_json, text, to_json};
use crate::store::{EmbeddedStore, LEDGER};

const HEAD: &str = "SELECT seq, hash, entry FROM audit_head WHERE book = ?";

const ADD: &str = "INSERT INTO audit (book, seq, entry) VALUES (?, ?, ?)";

const MOVE_HEAD: &str = "
    INSERT INTO audit_head (book, seq, hash, entry) VALUES (?, ?, ?, ?)
    ON CONFLICT (book) DO UPDATE SET seq = excluded.seq, hash = excluded.hash, entry = excluded.entry";

const REVISION: &str = "SELECT revision FROM orders WHERE book = ? AND order_id = ?";

const ORDER: &str = "SELECT order_id, document FROM orders WHERE book = ? AND order_id = ?";

const PUT: &str = "
    INSERT INTO orders (book, order_id, digits, revision, is_open, document) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (book, order_id) DO UPDATE
    SET revision = excluded.revision, is_open = excluded.is_open, document = excluded.document";

pub(crate) const OPEN: &str = "
    SELECT order_id, document, json_array(digits, book, order_id) FROM orders
    WHERE is_open = 1 AND (digits, book, order_id) > (?1, ?2, ?3)
    ORDER BY digits, book, order_id LIMIT ?4";

pub(crate) const OF_BOOK: &str = "
    SELECT order_id, document, json_array(book, digits, order_id) FROM orders
    WHERE book = ?1 AND digits <= ?2 AND (digits < ?2 OR order_id > ?3)
    ORDER BY digits DESC, order_id LIMIT ?4";

const BOOK_AFTER: &str = "SELECT book FROM orders WHERE book > ? ORDER BY book LIMIT 1";

pub(crate) const ENTRIES: &str = "
    SELECT book, entry, json_array(seq) FROM audit WHERE book = ? AND seq > ? ORDER BY seq LIMIT ?";

const BOOKS: &str = "SELECT book FROM audit_head UNION SELECT book FROM audit";

/// Where a listing of orders goes on: book, the identifier's digits, the identifier.
type OrderPlace = (String, String, String);

impl<C: Clock + 'static> Office for EmbeddedStore<C> {
    async fn head(&self, book: &Book) -> PortResult<Option<Entry>> {
        let book = book.clone();
        let reading = self.read(LEDGER, move |conn| {
            let mut head = conn.prepare_cached(HEAD)?;
            let mut found = head.query([book.as_str()])?;
            found.next()?.map(|row| from_json("newest audit entry", &book, text(row, 2)?)).transpose()
        });
        reading.await
    }

    async fn enter(&self, entry: &Entry, change: Option<&OrderChange>) -> PortResult<Entered> {
        let (entry, change) = (entry.clone(), change.cloned());
        let entering = self.write(LEDGER, move |conn| {
            if let Some(change) = &change
                && !is_expected(conn, change)?
            {
                return Ok(Entered::Overtaken);
            }
            if !follows_head(conn, &entry)? {
                return Ok(Entered::HeadMoved);
            }
            add(conn, &entry)?;
            change.map_or(Ok(()), |change| put(conn, &change.after))?;
            Ok(Entered::Landed)
        });
        entering.await
    }

    async fn progress(&self, change: &OrderChange) -> PortResult<bool> {
        let change = change.clone();
        let progressing = self.write(LEDGER, move |conn| {
            let is_expected = is_expected(conn, &change)?;
            if is_expected {
                put(conn, &change.after)?;
            }
            Ok(is_expected)
        });
        progressing.await
    }

    async fn order(&self, book: &Book, id: &OrderId) -> PortResult<Option<Order>> {
        let (book, id) = (book.clone(), id.clone());
        let reading = self.read(LEDGER, move |conn| {
            let mut select = conn.prepare_cached(ORDER)?;
            let mut found = select.query([book.as_str(), id.as_str()])?;
            found.next()?.map(order).transpose()
        });
        reading.await
    }

    async fn open_orders(&self, limit: usize, from: Option<&Cursor>) -> PortResult<Page<Order>> {
        let from = cursor::read::<OrderPlace>("open", from).map_err(|fault| fault.at(LEDGER))?;
        let reading = self.read(LEDGER, move |conn| {
            let (digits, book, id) = from.unwrap_or_default();
            let (limit, further) = cursor::one_further(limit);
            let mut open = conn.prepare_cached(OPEN)?;
            let found = open.query(params![digits, book, id, further])?;
            Ok(cursor::page("open", cursor::placed(found, 2, order)?, limit))
        });
        reading.await
    }

    async fn orders(
        &self,
        book: Option<&Book>,
        limit: usize,
        from: Option<&Cursor>,
    ) -> PortResult<Page<Order>> {
        let wanted = book.map(|book| book.as_str().to_owned());
        let from = cursor::read::<OrderPlace>("orders", from).map_err(|fault| fault.at(LEDGER))?;
        self.read(LEDGER, move |conn| orders(conn, wanted, limit, from)).await
    }

    async fn entries(&self, book: &Book, limit: usize, from: Option<&Cursor>) -> PortResult<Page<Entry>> {
        let book = book.as_str().to_owned();
        let from = cursor::read::<(i64,)>("entries", from).map_err(|fault| fault.at(LEDGER))?;
        let reading = self.read(LEDGER, move |conn| {
            let (after,) = from.unwrap_or_default();
            let (limit, further) = cursor::one_further(limit);
            let mut entries = conn.prepare_cached(ENTRIES)?;
            let found = entries.query(params![book, after, further])?;
            let entry = |row: &Row<'_>| from_json("audit entry of", text(row, 0)?, text(row, 1)?);
            Ok(cursor::page("entries", cursor::placed(found, 2, entry)?, limit))
        });
        reading.await
    }

    async fn books(&self) -> PortResult<Vec<Book>> {
        let reading = self.read(LEDGER, move |conn| {
            let mut select = conn.prepare_cached(BOOKS)?;
            let mut found = select.query([])?;
            let mut books = Vec::new();
            while let Some(row) = found.next()? {
                books.push(read_book(text(row, 0)?)?);
            }
            // By the books' own order, which is not that of their names: `*` comes last.
            books.sort();
            Ok(books)
        });
        reading.await
    }
}

/// Book by book, so that each is one range of the index.
fn orders(
    conn: &Connection,
    wanted: Option<String>,
    limit: usize,
    from: Option<OrderPlace>,
) -> Result<Page<Order>, Fault> {
    let (limit, further) = cursor::one_further(limit);
    let (mut book, mut place) = match from {
        Some((book, ..)) if wanted.as_ref().is_some_and(|wanted| *wanted != book) => {
            return Err(Fault::Refused(format!("the place belongs to another listing than {wanted:?}'s")));
        }
        Some((book, digits, id)) => (Some(book), Some((digits, id))),
        None if wanted.is_some() => (wanted.clone(), None),
        None => (book_after(conn, "")?, None),
    };
    let mut found = Vec::new();
    while let Some(current) = book {
        // Digits are ASCII: nothing of them sorts after this.
        let (digits, id) = place.take().unwrap_or(("\u{7f}".to_owned(), String::new()));
        let mut select = conn.prepare_cached(OF_BOOK)?;
        let rows = select.query(params![current, digits, id, further - found.len() as i64])?;
        found.extend(cursor::placed(rows, 2, order)?);
        let enough = found.len() > limit || wanted.is_some();
        book = if enough { None } else { book_after(conn, &current)? };
    }
    Ok(cursor::page("orders", found, limit))
}

fn book_after(conn: &Connection, book: &str) -> Result<Option<String>, Fault> {
    Ok(conn.prepare_cached(BOOK_AFTER)?.query_row([book], |row| row.get(0)).optional()?)
}

/// Whether the entry is the next of its book.
pub(crate) fn follows_head(conn: &Connection, entry: &Entry) -> Result<bool, Fault> {
    let head: Option<(i64, String)> = conn
        .prepare_cached(HEAD)?
        .query_row([entry.book.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let (seq, hash) = head.unwrap_or((0, NOTHING_BEFORE.to_owned()));
    Ok(entry.seq.cast_signed() == seq + 1 && entry.previous == hash)
}

/// Adds the entry to its book, as its newest.
pub(crate) fn add(conn: &Connection, entry: &Entry) -> Result<(), Fault> {
    let (book, seq) = (entry.book.as_str(), entry.seq.cast_signed());
    let written = to_json("audit entry", &entry.id, entry)?;
    conn.prepare_cached(ADD)?.execute(params![book, seq, written])?;
    conn.prepare_cached(MOVE_HEAD)?.execute(params![book, seq, entry.hash, written])?;
    Ok(())
}

fn is_expected(conn: &Connection, change: &OrderChange) -> Result<bool, Fault> {
    let place = [change.after.book.as_str(), change.after.id.as_str()];
    let stored: Option<i64> = conn.prepare_cached(REVISION)?.query_row(place, |row| row.get(0)).optional()?;
    Ok(stored == change.expected.map(u64::cast_signed))
}

fn put(conn: &Connection, order: &Order) -> Result<(), Fault> {
    let id = order.id.as_str();
    let digits = id.split_once('_').map_or(id, |(_, digits)| digits);
    let (revision, is_open) = (order.revision.cast_signed(), i64::from(order.is_open()));
    let document = to_json("order", id, order)?;
    conn.prepare_cached(PUT)?.execute(params![
        order.book.as_str(),
        id,
        digits,
        revision,
        is_open,
        document
    ])?;
    Ok(())
}

/// Reads an order of the columns `order_id` and `document`, in this order.
fn order(row: &Row<'_>) -> Result<Order, Fault> {
    from_json("order", text(row, 0)?, text(row, 1)?)
}

fn read_book(name: &str) -> Result<Book, Fault> {
    if name == Book::Across.as_str() {
        return Ok(Book::Across);
    }
    let tenant = TenantId::parse(name);
    tenant.map(Book::Tenant).map_err(|fault| Fault::Refused(format!("a book cannot be read: {fault}")))
}
