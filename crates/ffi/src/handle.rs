//! What every named handle ([`Tensor`](crate::Tensor), [`Function`](crate::Function), …) has in common.

/// Implements the conversions of a handle `$name`, a newtype over `Ref<$cell>`, and declares the cell's fixed type.
/// With `by content`, the cell's `content_equal` and `content_hash` make structural equality; without, identity does.
macro_rules! object_handle {
    (@content by content) => {
        const KIND: $crate::NodeKind = $crate::NodeKind::Tree;

        fn fields_equal(&self, other: &Self, eq: &mut $crate::StructuralEqual) -> bool {
            self.content_equal(other, eq)
        }

        fn fields_hash(&self, hash: &mut $crate::StructuralHash) {
            self.content_hash(hash);
        }
    };
    (@content) => {};
    ($name:ident, $cell:ident, $key:literal, $index:expr $(, $($by:ident)+)?) => {
        // SAFETY: the slot belongs to this type alone.
        unsafe impl $crate::Object for $cell {
            const TYPE_KEY: &'static str = $key;
            const STATIC_INDEX: Option<i32> = Some($index);

            fn slot() -> &'static $crate::type_info::TypeSlot {
                static SLOT: $crate::type_info::TypeSlot = $crate::type_info::TypeSlot::new();
                &SLOT
            }

            $crate::handle::object_handle!(@content $($($by)+)?);
        }

        impl $crate::Field for $name {
            const STORAGE: $crate::Storage = $crate::Storage::Object;
            const STATIC_INDEX: i32 = $index;

            fn to_any(&self) -> $crate::Any {
                self.into()
            }

            fn s_equal(&self, other: &Self, eq: &mut $crate::StructuralEqual) -> bool {
                $crate::Field::s_equal(&self.0, &other.0, eq)
            }

            fn s_hash(&self, hash: &mut $crate::StructuralHash) {
                $crate::Field::s_hash(&self.0, hash);
            }
        }

        impl $crate::Handle for $name {
            fn expected() -> String {
                $key.to_string()
            }

            #[inline]
            fn as_object(&self) -> &$crate::ObjectRef {
                $crate::Handle::as_object(&self.0)
            }

            #[inline]
            fn try_from_object(object: $crate::ObjectRef) -> Result<Self, $crate::ObjectRef> {
                object.downcast().map($name)
            }
        }

        impl From<$name> for $crate::ObjectRef {
            fn from(value: $name) -> Self {
                value.0.into()
            }
        }

        impl From<$name> for $crate::Any {
            #[inline]
            fn from(value: $name) -> Self {
                value.0.into()
            }
        }

        impl From<&$name> for $crate::Any {
            fn from(value: &$name) -> Self {
                value.0.clone().into()
            }
        }

        impl TryFrom<$crate::ObjectRef> for $name {
            type Error = $crate::Error;

            fn try_from(object: $crate::ObjectRef) -> Result<Self, $crate::Error> {
                <$name as $crate::FromAny>::from_any((&object).into())
            }
        }
    };
}

/// Implements `FromAny` for a handle that no other value converts to.
macro_rules! exact_from_any {
    ($name:ident) => {
        impl $crate::FromAny for $name {
            #[inline]
            fn from_any(value: $crate::AnyView<'_>) -> Result<Self, $crate::Error> {
                $crate::convert::handle_from_any(value)
            }
        }
    };
}

pub(crate) use {exact_from_any, object_handle};
