//! Only the tests beside this file matter.
