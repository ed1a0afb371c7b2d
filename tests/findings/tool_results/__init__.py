"""What strangers found about tool results, working memory and facts."""
