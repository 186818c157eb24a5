//! A file system in memory that remembers, beside what a process sees, what a power cut would leave.
//!
//! Of every page (4 KiB) of a file it keeps the content that is durable and the versions written since; of sizes and of
//! directories the same. A sync makes durable what had come back before the sync was asked for, and nothing else.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::path::{Component, Path};
use std::rc::Rc;

use super::world::Dice;
use crate::limits::BLOCK;

pub(crate) type Page = Rc<[u8]>;
pub(crate) type InodeId = u64;

const ROOT: InodeId = 0;
/// Pages of removed files that may turn up in space that was reserved and never written.
const OLD_PAGES: usize = 64;

/// When a change is covered by a sync: its number once it came back, `None` while it is on its way.
pub(crate) type Settled = Option<u64>;

#[derive(Debug)]
pub(crate) struct Version {
    pub settled: Settled,
    ticket: u64,
    /// `None`: cut away.
    pub page: Option<Page>,
}

#[derive(Debug, Default)]
pub(crate) struct FileData {
    pub pages: BTreeMap<u64, Page>,
    pub size: u64,
    pub modified_ms: i64,
    pub durable: BTreeMap<u64, Page>,
    pub durable_size: u64,
    pub dirty: BTreeMap<u64, Vec<Version>>,
    pub sizes: Vec<(u64, u64)>,
    /// Pages in the page cache, for those who read through it.
    pub resident: BTreeSet<u64>,
}

#[derive(Clone, Debug)]
pub(crate) enum DirChange {
    Link(String, InodeId),
    Unlink(String),
    Rename { from: String, to: String, inode: InodeId },
}

#[derive(Debug, Default)]
pub(crate) struct DirData {
    pub entries: BTreeMap<String, InodeId>,
    pub durable: BTreeMap<String, InodeId>,
    pub changes: Vec<(u64, DirChange)>,
}

#[derive(Debug)]
pub(crate) enum Inode {
    File(FileData),
    Dir(DirData),
}

#[derive(Debug)]
pub(crate) struct Disk {
    pub inodes: BTreeMap<InodeId, Inode>,
    next_inode: InodeId,
    sequence: u64,
    pub old_pages: VecDeque<Page>,
    /// Paths that a process holds a lock on, and which one.
    pub locks: BTreeMap<std::path::PathBuf, u64>,
}

fn error(errno: i32) -> io::Error {
    io::Error::from_raw_os_error(errno)
}

pub(crate) fn apply(entries: &mut BTreeMap<String, InodeId>, change: &DirChange) {
    match change {
        DirChange::Link(name, inode) => {
            entries.insert(name.clone(), *inode);
        }
        DirChange::Unlink(name) => {
            entries.remove(name);
        }
        DirChange::Rename { from, to, inode } => {
            entries.remove(from);
            entries.insert(to.clone(), *inode);
        }
    }
}

fn page_range(position: u64, len: usize) -> std::ops::Range<u64> {
    position / BLOCK as u64..(position + len as u64).div_ceil(BLOCK as u64)
}

impl Disk {
    pub fn new() -> Disk {
        Disk {
            inodes: BTreeMap::from([(ROOT, Inode::Dir(DirData::default()))]),
            next_inode: 1,
            sequence: 0,
            old_pages: VecDeque::new(),
            locks: BTreeMap::new(),
        }
    }

    /// Everything that came back so far has a number up to this.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    fn tick(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    pub fn lookup(&self, path: &Path) -> io::Result<InodeId> {
        let mut at = ROOT;
        for component in path.components() {
            match component {
                Component::Normal(name) => {
                    let Inode::Dir(dir) = self.inode(at)? else { return Err(error(libc::ENOTDIR)) };
                    at = *dir.entries.get(&*name.to_string_lossy()).ok_or_else(|| error(libc::ENOENT))?;
                }
                Component::ParentDir => return Err(error(libc::EINVAL)),
                Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
            }
        }
        Ok(at)
    }

    fn inode(&self, id: InodeId) -> io::Result<&Inode> {
        self.inodes.get(&id).ok_or_else(|| error(libc::EBADF))
    }

    pub fn file(&self, id: InodeId) -> io::Result<&FileData> {
        match self.inode(id)? {
            Inode::File(file) => Ok(file),
            Inode::Dir(_) => Err(error(libc::EISDIR)),
        }
    }

    pub fn file_mut(&mut self, id: InodeId) -> io::Result<&mut FileData> {
        match self.inodes.get_mut(&id) {
            Some(Inode::File(file)) => Ok(file),
            Some(Inode::Dir(_)) => Err(error(libc::EISDIR)),
            None => Err(error(libc::EBADF)),
        }
    }

    fn dir_mut(&mut self, id: InodeId) -> io::Result<&mut DirData> {
        match self.inodes.get_mut(&id) {
            Some(Inode::Dir(dir)) => Ok(dir),
            Some(Inode::File(_)) => Err(error(libc::ENOTDIR)),
            None => Err(error(libc::EBADF)),
        }
    }

    /// The directory that holds `path`, and its last name.
    fn parent(&self, path: &Path) -> io::Result<(InodeId, String)> {
        let name = path.file_name().ok_or_else(|| error(libc::EINVAL))?.to_string_lossy().into_owned();
        let parent = self.lookup(path.parent().unwrap_or(Path::new("/")))?;
        Ok((parent, name))
    }

    fn change_dir(&mut self, dir: InodeId, change: DirChange) -> io::Result<()> {
        let sequence = self.tick();
        let dir = self.dir_mut(dir)?;
        apply(&mut dir.entries, &change);
        dir.changes.push((sequence, change));
        Ok(())
    }

    fn add(&mut self, path: &Path, inode: Inode) -> io::Result<InodeId> {
        let (parent, name) = self.parent(path)?;
        let id = self.next_inode;
        self.next_inode += 1;
        self.inodes.insert(id, inode);
        self.change_dir(parent, DirChange::Link(name, id))?;
        Ok(id)
    }

    /// The file at `path`, made if it is not there.
    pub fn create_file(&mut self, path: &Path, must_be_new: bool, wall_ms: i64) -> io::Result<InodeId> {
        match self.lookup(path) {
            Ok(_) if must_be_new => Err(error(libc::EEXIST)),
            Ok(id) => self.file(id).map(|_| id),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                self.add(path, Inode::File(FileData { modified_ms: wall_ms, ..FileData::default() }))
            }
            Err(e) => Err(e),
        }
    }

    pub fn make_dir(&mut self, path: &Path) -> io::Result<()> {
        match self.lookup(path) {
            Ok(_) => Err(error(libc::EEXIST)),
            Err(_) => self.add(path, Inode::Dir(DirData::default())).map(drop),
        }
    }

    /// Removes one name, of a file or an empty directory.
    pub fn unlink(&mut self, path: &Path) -> io::Result<()> {
        let id = self.lookup(path)?;
        match self.inode(id)? {
            Inode::Dir(dir) if !dir.entries.is_empty() => return Err(error(libc::ENOTEMPTY)),
            Inode::Dir(_) => {}
            Inode::File(file) => {
                // Not the first: it begins with a whole batch, which nothing tells from one of the file it turns up in.
                let pages: Vec<Page> = file.pages.range(1..).take(8).map(|(_, page)| page.clone()).collect();
                self.bury(pages);
            }
        }
        let (parent, name) = self.parent(path)?;
        self.change_dir(parent, DirChange::Unlink(name))
    }

    fn bury(&mut self, pages: Vec<Page>) {
        self.old_pages.extend(pages);
        let over = self.old_pages.len().saturating_sub(OLD_PAGES);
        self.old_pages.drain(..over);
    }

    /// Within one directory, as all renames of ours are.
    pub fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let inode = self.lookup(from)?;
        let ((old_dir, from), (new_dir, to)) = (self.parent(from)?, self.parent(to)?);
        if old_dir != new_dir {
            return Err(error(libc::EXDEV));
        }
        self.change_dir(old_dir, DirChange::Rename { from, to, inode })
    }

    /// Names, whether they are directories, and lengths; in name order.
    pub fn list(&self, path: &Path) -> io::Result<Vec<(String, bool, u64)>> {
        let Inode::Dir(dir) = self.inode(self.lookup(path)?)? else { return Err(error(libc::ENOTDIR)) };
        let mut out = Vec::new();
        for (name, id) in &dir.entries {
            match self.inode(*id)? {
                Inode::Dir(_) => out.push((name.clone(), true, 0)),
                Inode::File(file) => out.push((name.clone(), false, file.size)),
            }
        }
        Ok(out)
    }

    /// Length, time of the last change, and bytes taken. Directories have none of them.
    pub fn stat(&self, path: &Path) -> io::Result<(u64, i64, u64)> {
        match self.inode(self.lookup(path)?)? {
            Inode::File(file) => Ok((file.size, file.modified_ms, file.pages.len() as u64 * BLOCK as u64)),
            Inode::Dir(_) => Ok((0, 0, 0)),
        }
    }

    pub fn bytes_used(&self) -> u64 {
        let pages = |inode: &Inode| if let Inode::File(file) = inode { file.pages.len() as u64 } else { 0 };
        self.inodes.values().map(pages).sum::<u64>() * BLOCK as u64
    }

    /// Up to `len` bytes; fewer only at the end of the file.
    pub fn read(&self, id: InodeId, position: u64, len: usize) -> io::Result<Vec<u8>> {
        let file = self.file(id)?;
        let end = file.size.min(position.saturating_add(len as u64));
        let mut out = Vec::with_capacity(end.saturating_sub(position) as usize);
        let mut at = position;
        while at < end {
            let skip = (at % BLOCK as u64) as usize;
            let count = (BLOCK - skip).min((end - at) as usize);
            match file.pages.get(&(at / BLOCK as u64)) {
                Some(page) => out.extend_from_slice(&page[skip..skip + count]),
                None => out.resize(out.len() + count, 0),
            }
            at += count as u64;
        }
        Ok(out)
    }

    /// Writes; what is written counts for a sync only after [`Disk::came_back`] with the ticket.
    pub fn write(&mut self, id: InodeId, position: u64, bytes: &[u8], wall_ms: i64) -> io::Result<u64> {
        let ticket = self.tick();
        let file = self.file_mut(id)?;
        file.modified_ms = wall_ms;
        let end = position + bytes.len() as u64;
        for number in page_range(position, bytes.len()) {
            let mut page = file.pages.get(&number).map_or_else(|| vec![0; BLOCK], |page| page.to_vec());
            let start = number * BLOCK as u64;
            let (from, to) = (position.max(start), end.min(start + BLOCK as u64));
            let source = &bytes[(from - position) as usize..(to - position) as usize];
            page[(from - start) as usize..(to - start) as usize].copy_from_slice(source);
            let page: Page = page.into();
            file.pages.insert(number, page.clone());
            file.dirty.entry(number).or_default().push(Version { settled: None, ticket, page: Some(page) });
        }
        if end > file.size {
            file.size = end;
            file.sizes.push((ticket, end));
        }
        Ok(ticket)
    }

    /// The write with this ticket is over.
    pub fn came_back(&mut self, id: InodeId, position: u64, len: usize, ticket: u64) {
        let settled = Some(self.tick());
        let Ok(file) = self.file_mut(id) else { return };
        for number in page_range(position, len) {
            for version in file.dirty.get_mut(&number).into_iter().flatten() {
                if version.ticket == ticket {
                    version.settled = settled;
                }
            }
        }
    }

    /// The process is gone: what it had on its way is there now, or never will be.
    pub fn all_came_back(&mut self) {
        let settled = Some(self.tick());
        let files = self.inodes.values_mut().filter_map(|inode| match inode {
            Inode::File(file) => Some(file),
            Inode::Dir(_) => None,
        });
        for version in files.flat_map(|file| file.dirty.values_mut()).flatten() {
            version.settled = version.settled.or(settled);
        }
    }

    /// A write that fails: any of its pages may have got there.
    pub fn write_in_part(&mut self, id: InodeId, position: u64, bytes: &[u8], wall_ms: i64, dice: &mut Dice) {
        let mut at = position;
        while at < position + bytes.len() as u64 {
            let end = (at / BLOCK as u64 * BLOCK as u64 + BLOCK as u64).min(position + bytes.len() as u64);
            let part = &bytes[(at - position) as usize..(end - position) as usize];
            if dice.one_in(2)
                && let Ok(ticket) = self.write(id, at, part, wall_ms)
            {
                self.came_back(id, at, part.len(), ticket);
            }
            at = end;
        }
    }

    /// Cuts or extends; extended space reads as zeros until a power cut.
    pub fn truncate(&mut self, id: InodeId, size: u64, wall_ms: i64) -> io::Result<()> {
        let sequence = self.tick();
        let file = self.file_mut(id)?;
        file.modified_ms = wall_ms;
        let first_gone = size.div_ceil(BLOCK as u64);
        let known = file.pages.keys().chain(file.durable.keys()).chain(file.dirty.keys());
        let gone: BTreeSet<u64> = known.copied().filter(|number| *number >= first_gone).collect();
        for number in gone {
            file.pages.remove(&number);
            let version = Version { settled: Some(sequence), ticket: sequence, page: None };
            file.dirty.entry(number).or_default().push(version);
        }
        let kept = (size % BLOCK as u64) as usize;
        let last = size / BLOCK as u64;
        if kept > 0
            && let Some(page) = file.pages.get(&last).filter(|page| page[kept..].iter().any(|b| *b != 0))
        {
            let mut page = page.to_vec();
            page[kept..].fill(0);
            let page: Page = page.into();
            file.pages.insert(last, page.clone());
            let version = Version { settled: Some(sequence), ticket: sequence, page: Some(page) };
            file.dirty.entry(last).or_default().push(version);
        }
        if size != file.size {
            file.size = size;
            file.sizes.push((sequence, size));
        }
        Ok(())
    }

    pub fn reserve(&mut self, id: InodeId, size: u64, wall_ms: i64) -> io::Result<()> {
        if self.file(id)?.size >= size { Ok(()) } else { self.truncate(id, size, wall_ms) }
    }

    /// Makes durable what had come back when the sync was asked for (`upto`).
    pub fn sync(&mut self, id: InodeId, upto: u64) -> io::Result<()> {
        let file = self.file_mut(id)?;
        for (number, versions) in &mut file.dirty {
            if let Some(version) = take_settled(versions, upto) {
                match version.page {
                    Some(page) => file.durable.insert(*number, page),
                    None => file.durable.remove(number),
                };
            }
        }
        file.dirty.retain(|_, versions| !versions.is_empty());
        if let Some((_, size)) = file.sizes.iter().rfind(|(at, _)| *at <= upto) {
            file.durable_size = *size;
        }
        file.sizes.retain(|(at, _)| *at > upto);
        Ok(())
    }

    /// Makes durable what the write with this ticket wrote, and nothing else of the file but its length.
    pub fn sync_written(&mut self, id: InodeId, position: u64, len: usize, ticket: u64) -> io::Result<()> {
        let file = self.file_mut(id)?;
        for number in page_range(position, len) {
            let Some(versions) = file.dirty.get_mut(&number) else { continue };
            // Somebody's sync had it already, or it was cut away since.
            let Some(at) = versions.iter().position(|version| version.ticket == ticket) else { continue };
            if let Some(Version { page: Some(page), .. }) = versions.drain(..=at).next_back() {
                file.durable.insert(number, page);
            }
        }
        file.dirty.retain(|_, versions| !versions.is_empty());
        if let Some((_, size)) = file.sizes.iter().rfind(|(at, _)| *at <= ticket) {
            file.durable_size = *size;
        }
        file.sizes.retain(|(at, _)| *at > ticket);
        Ok(())
    }

    /// A sync that fails. Of what went past the page cache (`direct`) any page got there, or is gone, or still waits on
    /// the device; of what lies in the page cache any page got there, and the others will not be tried again although
    /// whoever reads them sees them: as Linux does it.
    pub fn sync_in_part(&mut self, id: InodeId, upto: u64, direct: bool, dice: &mut Dice) {
        let Ok(file) = self.file_mut(id) else { return };
        for (number, versions) in &mut file.dirty {
            let fate = dice.below(3);
            if direct && fate == 2 {
                continue;
            }
            let Some(version) = take_settled(versions, upto) else { continue };
            if fate == 0 {
                match version.page {
                    Some(page) => file.durable.insert(*number, page),
                    None => file.durable.remove(number),
                };
            } else if direct && versions.is_empty() {
                match file.durable.get(number) {
                    Some(page) => file.pages.insert(*number, page.clone()),
                    None => file.pages.remove(number),
                };
            }
        }
        file.dirty.retain(|_, versions| !versions.is_empty());
    }

    pub fn sync_dir(&mut self, id: InodeId, upto: u64) -> io::Result<()> {
        let dir = self.dir_mut(id)?;
        for (_, change) in dir.changes.iter().filter(|(at, _)| *at <= upto) {
            apply(&mut dir.durable, change);
        }
        dir.changes.retain(|(at, _)| *at > upto);
        Ok(())
    }

    /// Forgets files that no name leads to: no process holds them any more.
    pub fn collect(&mut self) {
        let mut reached = BTreeSet::from([ROOT]);
        let mut open = vec![ROOT];
        while let Some(id) = open.pop() {
            let Some(Inode::Dir(dir)) = self.inodes.get(&id) else { continue };
            let pending = dir.changes.iter().filter_map(|(_, change)| match change {
                DirChange::Link(_, inode) | DirChange::Rename { inode, .. } => Some(*inode),
                DirChange::Unlink(_) => None,
            });
            let children = dir.entries.values().chain(dir.durable.values()).copied().chain(pending);
            open.extend(children.filter(|child| reached.insert(*child)));
        }
        self.inodes.retain(|id, _| reached.contains(id));
    }
}

/// The newest version that a sync covers, with all that came before it.
fn take_settled(versions: &mut Vec<Version>, upto: u64) -> Option<Version> {
    let last = versions.iter().rposition(|version| version.settled.is_some_and(|at| at <= upto))?;
    versions.drain(..=last).next_back()
}
