//! The shard's io_uring: what is handed to the kernel is owned here until it has come back.
//!
//! An operation is a slot that keeps what the kernel reads and writes (`held`): memory, a path, an open file. A caller that
//! goes away leaves it there, so that nothing is freed or closed under the kernel's hands; the slot is free again when the
//! operation has come back. Each has exactly one completion. Besides these a read of the doorbell is always under way.
//!
//! Owned by the shard's thread, within [`crate::driver::Driver`]. Budget: one system call for everything that became due.

use std::any::Any;
use std::io;
use std::os::fd::RawFd;
use std::task::{Poll, Waker};
use std::time::Duration;

use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode, squeue};

use crate::limits::{COMPLETIONS, RING_DEPTH};

/// Completions with this mark belong to nobody: those of cancellations.
const NOBODY: u64 = u64::MAX;
/// That of the read of the doorbell.
const BELL: u64 = u64::MAX - 1;

#[derive(Debug)]
enum State {
    Free,
    UnderWay(Option<Waker>),
    /// Its caller is gone.
    Abandoned,
    Done(i32),
}

struct Slot {
    state: State,
    held: Option<Box<dyn Any>>,
}

/// What came of an operation, and what it held.
type Outcome = (io::Result<u32>, Option<Box<dyn Any>>);

pub(crate) struct Ring {
    uring: IoUring,
    slots: Vec<Slot>,
    free: Vec<usize>,
    /// Came back, and their wakers wait for the next [`Ring::reap`]: there was no room for an entry before.
    early: Vec<Waker>,
    bell: RawFd,
    /// The read of the doorbell came back, and the next one is to be begun.
    rung: bool,
    /// Where the doorbell is read into. Never freed: the last read ends with the ring, some time after it.
    rings: &'static mut u64,
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Ring({} under way)", self.under_way())
    }
}

impl Ring {
    /// To be made on the thread that uses it. `bell`: the eventfd that ends a wait.
    pub fn new(bell: RawFd) -> io::Result<Ring> {
        let mut modern = IoUring::builder();
        modern.setup_single_issuer().setup_defer_taskrun().setup_taskrun_flag().setup_cqsize(COMPLETIONS);
        // Kernels before 6.1 know none of it.
        Ring::of(modern.build(RING_DEPTH).or_else(|_| IoUring::new(RING_DEPTH))?, bell)
    }

    fn of(uring: IoUring, bell: RawFd) -> io::Result<Ring> {
        let rings = Box::leak(Box::default());
        Ok(Ring { uring, slots: Vec::new(), free: Vec::new(), early: Vec::new(), bell, rung: true, rings })
    }

    fn listen(&mut self) -> io::Result<()> {
        if !std::mem::take(&mut self.rung) {
            return Ok(());
        }
        let into = std::ptr::from_mut(self.rings).cast();
        let read = opcode::Read::new(Fd(self.bell), into, size_of::<u64>() as u32).build().user_data(BELL);
        // SAFETY: the place is never freed, and one read at a time goes there.
        unsafe { self.push(&read) }
    }

    pub fn under_way(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Begins an operation; it goes to the kernel with the next [`Ring::submit`] or [`Ring::wait`].
    ///
    /// # Safety
    /// What `entry` points to lies in `held`, at a place that does not change when the box is moved.
    // SAFETY: promised by the caller, as said above.
    pub unsafe fn begin(&mut self, entry: squeue::Entry, held: Box<dyn Any>) -> io::Result<usize> {
        let filled = Slot { state: State::UnderWay(None), held: Some(held) };
        let id = match self.free.pop() {
            Some(id) => {
                self.slots[id] = filled;
                id
            }
            None => {
                self.slots.push(filled);
                self.slots.len() - 1
            }
        };
        // SAFETY: by the caller's promise; the slot keeps it until the completion is taken, or for ever.
        let pushed = unsafe { self.push(&entry.user_data(id as u64)) };
        if pushed.is_err() {
            self.release(id);
        }
        pushed.map(|()| id)
    }

    /// # Safety
    /// What `entry` points to stays where it is until its completion.
    // SAFETY: promised by the caller, as said above.
    unsafe fn push(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        // SAFETY: by the caller's promise.
        while unsafe { self.uring.submission().push(entry) }.is_err() {
            passing(self.uring.submit())?;
            // Old kernels take nothing while completions have no place.
            let mut early = std::mem::take(&mut self.early);
            self.take_completions(&mut early);
            self.early = early;
        }
        Ok(())
    }

    fn release(&mut self, id: usize) -> Option<Box<dyn Any>> {
        let slot = &mut self.slots[id];
        slot.state = State::Free;
        self.free.push(id);
        slot.held.take()
    }

    /// What became of an operation, with what it held; else `waker` is woken when it has come back.
    pub fn poll(&mut self, id: usize, waker: &Waker) -> Poll<Outcome> {
        let slot = &mut self.slots[id];
        match &mut slot.state {
            State::Done(result) => {
                let result = *result;
                let counted = u32::try_from(result).map_err(|_| io::Error::from_raw_os_error(-result));
                Poll::Ready((counted, self.release(id)))
            }
            State::UnderWay(old) => {
                if !old.as_ref().is_some_and(|old| old.will_wake(waker)) {
                    *old = Some(waker.clone());
                }
                Poll::Pending
            }
            State::Free | State::Abandoned => unreachable!("an operation is polled by its caller only"),
        }
    }

    /// The caller goes away. `cancel`: the operation is to end soon, whatever becomes of it.
    pub fn abandon(&mut self, id: usize, cancel: bool) -> Option<Box<dyn Any>> {
        // None at all after the end of the shard, see `forget_held`.
        let slot = self.slots.get_mut(id)?;
        if matches!(slot.state, State::Done(_)) {
            return self.release(id);
        }
        slot.state = State::Abandoned;
        if cancel {
            self.cancel(id);
        }
        None
    }

    fn cancel(&mut self, id: usize) {
        let entry = opcode::AsyncCancel::new(id as u64).build().user_data(NOBODY);
        // SAFETY: a cancellation points to nothing. Where it cannot be handed over the operation ends by itself.
        let _ = unsafe { self.push(&entry) };
    }

    /// Whether a system call has something to do: entries to hand over, or completions that the kernel keeps back.
    pub fn needs_submit(&mut self) -> bool {
        let queue = self.uring.submission();
        !queue.is_empty() || queue.taskrun() || queue.cq_overflow()
    }

    pub fn submit(&mut self) -> io::Result<()> {
        self.listen()?;
        passing(self.uring.submit())
    }

    /// Hands over what is due and waits until something has come back, a signal came, or the time has passed.
    pub fn wait(&mut self, limit: Option<Duration>) -> io::Result<()> {
        self.listen()?;
        if !self.early.is_empty() {
            return self.submit();
        }
        passing(match limit {
            None => self.uring.submit_and_wait(1),
            Some(limit) => {
                let time = Timespec::new().sec(limit.as_secs()).nsec(limit.subsec_nanos());
                self.uring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&time))
            }
        })
    }

    /// Takes what has come back; the wakers of those who wait go to `woken`.
    pub fn reap(&mut self, woken: &mut Vec<Waker>) {
        woken.append(&mut self.early);
        self.take_completions(woken);
    }

    fn take_completions(&mut self, woken: &mut Vec<Waker>) {
        loop {
            let Some(entry) = self.uring.completion().next() else { return };
            if entry.user_data() == BELL {
                self.rung = true;
                continue;
            }
            let id = entry.user_data() as usize;
            let Some(slot) = self.slots.get_mut(id) else { continue };
            match std::mem::replace(&mut slot.state, State::Done(entry.result())) {
                State::UnderWay(waker) => woken.extend(waker),
                _ => drop(self.release(id)),
            }
        }
    }

    /// Asks for an early end of everything under way.
    pub fn cancel_all(&mut self) {
        for id in 0..self.slots.len() {
            if matches!(self.slots[id].state, State::UnderWay(_) | State::Abandoned) {
                self.cancel(id);
            }
        }
    }

    /// Leaves to the kernel for ever what it still has.
    pub fn forget_held(&mut self) {
        self.slots.drain(..).for_each(|slot| std::mem::forget(slot.held));
        self.free.clear();
    }
}

/// Errors after which the next call goes on where this one ended.
fn passing(result: io::Result<usize>) -> io::Result<()> {
    match result {
        Err(e) if matches!(e.raw_os_error(), Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN)) => Ok(()),
        other => other.map(drop),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::fd::AsRawFd;
    use std::sync::Arc;
    use std::task::Wake;

    use super::*;
    use crate::doorbell::Doorbell;

    struct Nothing;

    impl Wake for Nothing {
        fn wake(self: Arc<Self>) {}
    }

    /// As new kernels have it, and as old ones.
    fn both(check: impl Fn(Ring, &Doorbell)) {
        for modern in [true, false] {
            let bell = Doorbell::new().unwrap();
            let made = if modern { Ring::new(bell.fd()) } else { Ring::of(IoUring::new(2).unwrap(), bell.fd()) };
            check(made.unwrap(), &bell);
        }
    }

    fn outcome(ring: &mut Ring, id: usize) -> io::Result<u32> {
        let waker = Waker::from(Arc::new(Nothing));
        loop {
            if let Poll::Ready((result, held)) = ring.poll(id, &waker) {
                assert!(held.is_some());
                return result;
            }
            ring.wait(None).unwrap();
            ring.reap(&mut Vec::new());
        }
    }

    #[test]
    fn what_is_held_stays_until_the_operation_has_come_back() {
        both(|mut ring, _| {
            let file = Arc::new(std::fs::File::open("/proc/self/exe").unwrap());
            let id = |ring: &mut Ring| {
                let read =
                    |buffer: &mut Vec<u8>| opcode::Read::new(Fd(file.as_raw_fd()), buffer.as_mut_ptr(), 4).build();
                let mut held = Box::new((vec![0u8; 4], file.clone()));
                let entry = read(&mut held.0);
                // SAFETY: the buffer's memory does not move with the box.
                unsafe { ring.begin(entry, held) }.unwrap()
            };
            let ids: Vec<usize> = (0..20).map(|_| id(&mut ring)).collect();
            assert_eq!((ring.under_way(), Arc::strong_count(&file)), (20, 21));
            ring.abandon(ids[3], false);
            assert!(
                ids.iter().enumerate().filter(|(n, _)| *n != 3).all(|(_, &id)| outcome(&mut ring, id).unwrap() == 4)
            );
            while ring.under_way() > 0 {
                ring.wait(None).unwrap();
                ring.reap(&mut Vec::new());
            }
            assert_eq!(Arc::strong_count(&file), 1);
        });
    }

    #[test]
    fn more_entries_than_places_are_taken() {
        both(|mut ring, _| {
            let nop = |ring: &mut Ring| {
                // SAFETY: the entry points to nothing.
                unsafe { ring.begin(opcode::Nop::new().build(), Box::new(())) }.unwrap()
            };
            let ids: Vec<usize> = (0..10_000).map(|_| nop(&mut ring)).collect();
            assert!(ids.into_iter().all(|id| outcome(&mut ring, id).is_ok()));
            assert_eq!(ring.under_way(), 0);
        });
    }

    #[test]
    fn a_wait_ends_with_the_bell_and_with_its_time() {
        both(|mut ring, bell| {
            let begun = std::time::Instant::now();
            ring.wait(Some(Duration::from_millis(20))).unwrap();
            assert!(begun.elapsed() >= Duration::from_millis(20));
            for _ in 0..3 {
                // SAFETY: eight bytes that live through the call.
                let rung = unsafe { libc::write(bell.fd(), 1u64.to_ne_bytes().as_ptr().cast(), 8) };
                assert_eq!(rung, 8);
                ring.wait(None).unwrap();
                ring.reap(&mut Vec::new());
            }
        });
    }

    #[test]
    fn a_poll_that_is_given_up_is_cancelled() {
        both(|mut ring, _| {
            let (one, _other) = std::os::unix::net::UnixStream::pair().unwrap();
            let poll = opcode::PollAdd::new(Fd(one.as_raw_fd()), libc::POLLIN as u32).build();
            // SAFETY: the entry points to nothing.
            let id = unsafe { ring.begin(poll, Box::new(())) }.unwrap();
            ring.wait(Some(Duration::from_millis(1))).unwrap();
            ring.abandon(id, true);
            while ring.under_way() > 0 {
                ring.wait(None).unwrap();
                ring.reap(&mut Vec::new());
            }
        });
    }
}
