//! Which device of a kind the calling thread works with: what compiled code says before it launches kernels.

use std::cell::RefCell;

use relaxide_ffi::Device;

thread_local! {
    static CURRENT: RefCell<Vec<Device>> = const { RefCell::new(Vec::new()) };
}

/// Has the thread work with a device, among those of its kind.
pub fn set_current_device(device: Device) {
    CURRENT.with_borrow_mut(|current| {
        current.retain(|known| known.device_type != device.device_type);
        current.push(device);
    });
}

/// The device of a kind that the thread works with; the first where it has said nothing.
pub fn current_device(device_type: i32) -> Device {
    CURRENT.with_borrow(|current| {
        let said = current.iter().find(|known| known.device_type == device_type);
        said.copied().unwrap_or_else(|| Device::new(device_type, 0))
    })
}
