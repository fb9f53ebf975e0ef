//! Bytes as what a client of the server sends, and as what it and its workers say to each other: nothing but an error, or a call whose
//! tensors have as many bytes as they say.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use relaxide_serve::Tensor;
use relaxide_serve::decode::{Answer, Call, Order, grpc_frame, grpc_request, http_request};

fn check(call: &Call) {
    for (name, tensor) in &call.inputs {
        let again = Tensor::new(name, tensor.datatype(), tensor.shape().to_vec(), tensor.data().clone());
        assert_eq!(again.as_ref(), Ok(tensor));
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((choice, bytes)) = data.split_first() else { return };
    let bytes = Bytes::copy_from_slice(bytes);
    match choice % 5 {
        0 => {
            let _ = http_request(&bytes, None).inspect(check);
        }
        // The length of the JSON stands in front.
        1 => {
            let Some((length, body)) = bytes.split_first_chunk::<2>() else { return };
            let length = u16::from_le_bytes(*length).to_string();
            let _ = http_request(&Bytes::copy_from_slice(body), Some(&length)).inspect(check);
        }
        2 => {
            let _ = grpc_request(bytes).inspect(|(_, _, call)| check(call));
        }
        3 => {
            let _ = grpc_frame(&bytes);
        }
        _ => {
            let _ = Answer::decode(bytes.clone());
            if let Ok(order) = Order::decode(bytes) {
                assert_eq!(Order::decode(Bytes::from(order.encode()).slice(8..)), Ok(order));
            }
        }
    }
});
