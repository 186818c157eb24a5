//! Request and response headers: the first bytes of every frame, before the message itself.

use bytes::BytesMut;

use crate::{ApiKey, Chunk, Encode, Reader, Request, WireError, Writer};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestHeader<'a> {
    pub api_key: ApiKey,
    pub api_version: i16,
    pub correlation_id: i32,
    pub client_id: Option<&'a str>,
}

impl<'a> RequestHeader<'a> {
    /// Reads a header and leaves the reader at the message. An unknown API or a version that is
    /// not served is an error, and Kafka closes the connection on both. The one exception is
    /// ApiVersions: any version of it has a header, and the handler answers version 0 with error 35
    /// to one that it does not serve (see [`RequestHeader::is_served`]).
    pub fn decode(reader: &mut Reader<'a>) -> Result<Self, WireError> {
        let key = reader.i16()?;
        let api_version = reader.i16()?;
        let api_key = ApiKey::from_i16(key).ok_or(WireError::UnknownApi { api_key: key })?;
        if api_key != ApiKey::ApiVersions {
            api_key.check_version(api_version)?;
        }
        let correlation_id = reader.i32()?;
        // The client id has a 16-bit length in every version, flexible ones too.
        let client_id = reader.nullable_string(false)?;
        if api_key.request_header_version(api_version) >= 2 {
            reader.skip_tagged_fields()?;
        }
        Ok(Self { api_key, api_version, correlation_id, client_id })
    }

    pub fn encode(&self, writer: &mut Writer) -> Result<(), WireError> {
        writer.i16(self.api_key as i16);
        writer.i16(self.api_version);
        writer.i32(self.correlation_id);
        writer.nullable_string(self.client_id, false)?;
        if self.api_key.request_header_version(self.api_version) >= 2 {
            writer.uvarint(0);
        }
        Ok(())
    }

    /// Whether the message behind this header can be decoded: false only for ApiVersions of a
    /// version that is not served.
    pub fn is_served(&self) -> bool {
        self.api_key.check_version(self.api_version).is_ok()
    }

    pub fn response_header_version(&self) -> i16 {
        self.api_key.response_header_version(self.api_version)
    }
}

/// Writes a response header. Version 0 is the correlation id, 1 has tagged fields behind it.
pub(crate) fn encode_response_header(writer: &mut Writer, correlation_id: i32, header_version: i16) {
    writer.i32(correlation_id);
    if header_version >= 1 {
        writer.uvarint(0);
    }
}

/// Reads a response header and leaves the reader at the message: for clients and peers.
pub fn decode_response_header(reader: &mut Reader<'_>, header_version: i16) -> Result<i32, WireError> {
    let correlation_id = reader.i32()?;
    if header_version >= 1 {
        reader.skip_tagged_fields()?;
    }
    Ok(correlation_id)
}

/// One whole answer: size prefix, header, message.
pub fn encode_response(
    correlation_id: i32,
    header_version: i16,
    version: i16,
    response: &impl Encode,
) -> Result<Vec<Chunk>, WireError> {
    let mut buffer = BytesMut::new();
    encode_response_with(&mut buffer, correlation_id, header_version, |writer| response.encode(writer, version))
}

/// One whole answer whose message `body` writes: for the direct encoders of Produce and Fetch.
/// `buffer` is scratch space that is kept between answers; it need not be, but it saves allocations.
pub fn encode_response_with(
    buffer: &mut BytesMut,
    correlation_id: i32,
    header_version: i16,
    body: impl FnOnce(&mut Writer) -> Result<(), WireError>,
) -> Result<Vec<Chunk>, WireError> {
    assert!(buffer.is_empty(), "the scratch buffer of an answer holds bytes of another");
    let mut writer = Writer::with_buffer(std::mem::take(buffer));
    writer.i32(0);
    encode_response_header(&mut writer, correlation_id, header_version);
    body(&mut writer)?;
    let (chunks, spare) = writer.finish_frame_with_buffer()?;
    *buffer = spare;
    Ok(chunks)
}

/// One whole request: for clients and peers.
pub fn encode_request<R: Request>(
    correlation_id: i32,
    client_id: Option<&str>,
    version: i16,
    request: &R,
) -> Result<Vec<Chunk>, WireError> {
    R::API.check_version(version)?;
    let mut writer = Writer::new_frame();
    RequestHeader { api_key: R::API, api_version: version, correlation_id, client_id }.encode(&mut writer)?;
    request.encode(&mut writer, version)?;
    writer.finish_frame()
}

#[cfg(test)]
#[path = "header_tests.rs"]
mod tests;
