//! What a device says of itself.

use relaxide_ffi::{Error, ErrorKind};

macro_rules! attributes {
    ($($(#[$doc:meta])* $name:ident = $number:literal,)*) => {
        /// A property of a device. The numbers are those of TVM's interface.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(i64)]
        pub enum Attribute {
            $($(#[$doc])* $name = $number,)*
        }

        impl Attribute {
            /// All of them.
            pub const ALL: &[Attribute] = &[$(Attribute::$name,)*];
        }
    };
}

attributes! {
    /// Whether it is there.
    Exists = 0,
    /// The threads of a block.
    MaxThreadsPerBlock = 1,
    /// The threads that run in step.
    WarpSize = 2,
    /// The bytes of memory that a block's threads share.
    MaxSharedMemoryPerBlock = 3,
    /// The version of its instruction set.
    ComputeVersion = 4,
    /// Its name.
    DeviceName = 5,
    /// Its clock, in kilohertz.
    MaxClockRate = 6,
    /// How many processors it has.
    MultiProcessorCount = 7,
    /// The largest block, in each direction, as JSON.
    MaxThreadDimensions = 8,
    /// The registers of a block.
    MaxRegistersPerBlock = 9,
    /// The architecture, for some makers' devices.
    Architecture = 10,
    /// The version of the interface to it.
    ApiVersion = 11,
    /// The version of its driver.
    DriverVersion = 12,
    /// The bytes of its second cache.
    L2CacheSizeBytes = 13,
    /// The bytes of its memory.
    TotalGlobalMemory = 14,
    /// Those of them that are free.
    AvailableGlobalMemory = 15,
    /// How rows of images are aligned, in pixels.
    ImagePitchAlignment = 16,
}

impl Attribute {
    /// The property that a number stands for.
    pub fn from_number(number: i64) -> Result<Self, Error> {
        Self::ALL.iter().copied().find(|attribute| *attribute as i64 == number).ok_or_else(|| {
            Error::new(ErrorKind::ValueError, format!("there is no device attribute with the number {number}"))
        })
    }
}
