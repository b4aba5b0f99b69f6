//! The C++ names of symbols that a compiler has mangled.

use cpp_demangle::{DemangleOptions, Symbol};

/// Returns the C++ name with the types of the parameters, `scale<float>(float*, int)`. A name that
/// is not mangled stays as it is.
pub fn readable(symbol: &str) -> String {
    let name = Symbol::new(symbol).ok().and_then(|name| name.demangle().ok());
    name.unwrap_or_else(|| symbol.to_owned())
}

/// Returns the C++ name without its parameters: `scale<float>`.
pub fn short(symbol: &str) -> String {
    let options = DemangleOptions::new().no_params().no_return_type();
    let name = Symbol::new(symbol).ok().and_then(|name| name.demangle_with_options(&options).ok());
    name.unwrap_or_else(|| symbol.to_owned())
}

/// Returns whether `wanted` names this symbol, mangled or in C++.
pub fn is_meant(symbol: &str, wanted: &str) -> bool {
    let bare = |name: &str| name.replace(' ', "");
    let short = short(symbol);
    let without_template = short.split('<').next().unwrap_or_default();
    symbol == wanted
        || bare(&short) == bare(wanted)
        || without_template == wanted
        || bare(&readable(symbol)) == bare(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_found_by_either_name() {
        let symbol = "_Z5scaleIfEvPT_S0_i";
        assert_eq!(short(symbol), "scale<float>");
        assert_eq!(readable(symbol), "void scale<float>(float*, float, int)");
        for wanted in [symbol, "scale<float>", "scale< float >", "scale", &readable(symbol)] {
            assert!(is_meant(symbol, wanted), "{wanted}");
        }
        assert!(!is_meant(symbol, "scale<double>") && !is_meant(symbol, "scal"));
        assert_eq!(readable("_Zno"), "_Zno");
        assert!(is_meant("plain", "plain"));
    }
}
