//! Answers, and answers to come.

use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use runtime::sync::OneshotReceiver;
use wire::{Decode, Reader, Request};

use crate::ClientError;
use crate::link::core::Outcome;

/// An answer's bytes, and the version to read them with.
#[derive(Clone, Debug)]
pub struct Answer<R> {
    pub version: i16,
    /// Behind the response header.
    pub body: Bytes,
    pub node: i32,
    _request: PhantomData<fn() -> R>,
}

impl<R: Request> Answer<R> {
    pub fn decode(&self) -> Result<R::Response<'_>, ClientError> {
        R::Response::decode(&mut Reader::new(&self.body), self.version).map_err(|error| ClientError::BadAnswer {
            reason: format!("{} version {} from node {}: {error}", R::API.name(), self.version, self.node),
        })
    }
}

/// An answer to come; completes with the connection's fate or at the deadline. Dropping it forgets the answer, never the
/// pairing of later ones.
#[derive(Debug)]
pub struct Pending<R> {
    receiver: OneshotReceiver<Outcome>,
    node: i32,
    _request: PhantomData<fn() -> R>,
}

impl<R> Pending<R> {
    pub(crate) fn new(receiver: OneshotReceiver<Outcome>, node: i32) -> Pending<R> {
        Pending { receiver, node, _request: PhantomData }
    }
}

impl<R: Request> Future for Pending<R> {
    type Output = Result<Answer<R>, ClientError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let node = self.node;
        Pin::new(&mut self.receiver).poll(cx).map(|outcome| match outcome {
            Some(Ok(raw)) => Ok(Answer { version: raw.version, body: raw.body, node, _request: PhantomData }),
            Some(Err(error)) => Err(error),
            None => Err(ClientError::Disconnected { node, reason: "the connection was dropped".to_string() }),
        })
    }
}
