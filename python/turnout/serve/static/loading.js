// Says why there is no question if the program of the page does not run. Browsers of any age understand this file.
(function () {
  "use strict";

  var OLD = "This browser is too old for this page. Update it, or use Chrome 137, Firefox 129, Safari 17 or later.";
  var AWAY = "A part of this page did not arrive. Check your connection and reload the page.";

  function say(text) {
    if (document.readyState === "loading") {
      document.addEventListener("DOMContentLoaded", function () {
        say(text);
      });
      return;
    }
    // Gone once the program runs: it says itself what is wrong then.
    var loading = document.getElementById("loading");
    if (loading === null) return;
    loading.className = "wrong";
    loading.setAttribute("role", "alert");
    loading.textContent = text;
  }

  if (!("noModule" in document.createElement("script"))) say(OLD);
  addEventListener(
    "error",
    function (event) {
      if (event.target === window) say(OLD);
      else if (event.target.tagName === "SCRIPT") say(AWAY);
    },
    true,
  );
})();
