"""Models made from changes of others: which changes, what their rows mean, how far the model has got."""
